// process_*: what the operating system says about this process, read at each scrape. Names as in
// Prometheus' own clients. Thread-safe.
#pragma once

#include <vector>

#include "prometheus/metric_family.h"

namespace distro {

// A reading that the system does not give is left out.
std::vector<prometheus::MetricFamily> ProcessMetrics();

}  // namespace distro
