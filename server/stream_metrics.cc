#include "server/stream_metrics.h"

#include <utility>

#include "common/telemetry/metric_families.h"

namespace distro::server {

std::vector<prometheus::MetricFamily> StreamMetrics(const StreamGate& gate) {
  FamilyBuilder builder;
  builder.AddGauge("distro_aggregator_inflight_bytes",
                   "Bytes of update payloads that are arriving and not yet whole.", {},
                   static_cast<double>(gate.inflight().used()));
  builder.AddGauge("distro_aggregator_inflight_bytes_limit", "What they may be together.", {},
                   static_cast<double>(gate.inflight().limit()));
  const std::pair<const char*, StreamKind> kinds[] = {{"upload", StreamKind::kUpload},
                                                      {"subscription", StreamKind::kSubscription},
                                                      {"snapshot", StreamKind::kSnapshot},
                                                      {"link", StreamKind::kLink}};
  for (const auto& [label, kind] : kinds) {
    builder.AddGauge("distro_aggregator_open_streams", "Streams that are open, by what they carry.",
                     {{"kind", label}}, gate.open(kind));
  }
  return builder.Take();
}

}  // namespace distro::server
