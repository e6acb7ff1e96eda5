// What /metrics says of streams and of the payloads that are arriving (docs/metrics.md). Thread-safe.
#pragma once

#include <vector>

#include "prometheus/metric_family.h"
#include "server/limits/stream_gate.h"

namespace distro::server {

std::vector<prometheus::MetricFamily> StreamMetrics(const StreamGate& gate);

}  // namespace distro::server
