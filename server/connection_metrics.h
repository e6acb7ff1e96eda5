// What /metrics says of connections (docs/metrics.md). Thread-safe.
#pragma once

#include <vector>

#include "prometheus/metric_family.h"
#include "server/connections/connection_table.h"

namespace distro::server {

std::vector<prometheus::MetricFamily> ConnectionMetrics(const ConnectionTable& table);

}  // namespace distro::server
