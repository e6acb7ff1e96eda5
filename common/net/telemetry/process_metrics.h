// The operating system's metrics of this process, process_*, read at each scrape. Names as in
// Prometheus' own clients. Thread-safe.
#pragma once

#include <vector>

#include "prometheus/metric_family.h"

namespace distro {

// Omits a reading that the system does not provide.
std::vector<prometheus::MetricFamily> ProcessMetrics();

}  // namespace distro
