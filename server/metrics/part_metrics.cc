#include "server/metrics/part_metrics.h"

#include <string>
#include <utility>

#include "common/net/telemetry/metric_families.h"
#include "common/net/telemetry/worker_families.h"

namespace distro::server {

std::vector<prometheus::MetricFamily> StreamMetrics(const StreamLimiter& limiter) {
  FamilyBuilder builder;
  builder.AddGauge("distro_aggregator_inflight_bytes",
                   "Bytes of incomplete update payloads in transfer.", {},
                   static_cast<double>(limiter.inflight().used()));
  builder.AddGauge("distro_aggregator_inflight_bytes_limit",
                   "Limit of the bytes of incomplete update payloads.", {},
                   static_cast<double>(limiter.inflight().limit()));
  const std::pair<const char*, StreamKind> kinds[] = {{"upload", StreamKind::kUpload},
                                                      {"subscription", StreamKind::kSubscription},
                                                      {"snapshot", StreamKind::kSnapshot},
                                                      {"link", StreamKind::kLink}};
  for (const auto& [label, kind] : kinds) {
    builder.AddGauge("distro_aggregator_open_streams", "Open streams, by kind.", {{"kind", label}},
                     limiter.open(kind));
  }
  return builder.Take();
}

std::vector<prometheus::MetricFamily> ConnectionMetrics(const ConnectionTable& table) {
  FamilyBuilder builder;
  const std::string name = "distro_aggregator_connections";
  const std::string help = "Open connections, by whether they have shown a credential.";
  builder.AddGauge(name, help, {{"state", "anonymous"}}, table.anonymous());
  builder.AddGauge(name, help, {{"state", "authenticated"}}, table.authenticated());
  const std::array<uint64_t, kConnectionEnds> ends = table.ends();
  for (int i = 0; i < kConnectionEnds; ++i) {
    builder.AddCounter("distro_aggregator_connections_ended_total",
                       "Connections refused or ended because they exceeded a limit.",
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
