#include "server/metrics/part_metrics.h"

#include <string>
#include <utility>

#include "common/telemetry/metric_families.h"
#include "common/telemetry/worker_families.h"

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

std::vector<prometheus::MetricFamily> CollectWorkers(const WorkerReports& reports,
                                                     absl::Duration now) {
  const std::vector<WorkerReport> list = reports.List(now);
  std::vector<WorkerReadings> workers;
  for (const WorkerReport& report : list) {
    workers.push_back(
        {.worker = report.worker,
         .next_round = report.next_round,
         .last_report_seconds = absl::ToDoubleSeconds(report.received_at - absl::UnixEpoch()),
         .telemetry = report.telemetry.get()});
  }
  return WorkerFamilies(workers);
}

}  // namespace distro::server
