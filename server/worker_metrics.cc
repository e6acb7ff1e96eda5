#include "server/worker_metrics.h"

#include "common/telemetry/worker_families.h"

namespace distro::server {

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
