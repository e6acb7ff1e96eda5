#include "server/connection_metrics.h"

#include <string>

#include "common/telemetry/metric_families.h"

namespace distro::server {

std::vector<prometheus::MetricFamily> ConnectionMetrics(const ConnectionTable& table) {
  FamilyBuilder builder;
  const std::string name = "distro_aggregator_connections";
  const std::string help = "Connections that are open, by whether a credential was shown on them.";
  builder.AddGauge(name, help, {{"state", "anonymous"}}, table.anonymous());
  builder.AddGauge(name, help, {{"state", "authenticated"}}, table.authenticated());
  const std::array<uint64_t, kConnectionEnds> ends = table.ends();
  for (int i = 0; i < kConnectionEnds; ++i) {
    builder.AddCounter("distro_aggregator_connections_ended_total",
                       "Connections that were refused or ended for what they took.",
                       {{"reason", std::string(ConnectionEndName(ConnectionEnd(i)))}},
                       static_cast<double>(ends[i]));
  }
  return builder.Take();
}

}  // namespace distro::server
