#include "server/session/worker_reports.h"

#include <algorithm>
#include <utility>

#include "common/net/wire/worker_readings.h"

namespace distro::server {

int WorkerReports::Take(const v1::HeartbeatRequest& heartbeat, absl::Time wall,
                        absl::Duration now) {
  absl::MutexLock lock(&mu_);
  const v1::WorkerIdentity& worker = heartbeat.worker();
  auto it = reports_.find(worker.name());
  const bool goes_on = it != reports_.end() && it->second.incarnation == worker.incarnation();
  if (goes_on && heartbeat.sequence() <= it->second.sequence) return 0;
  auto telemetry = std::make_shared<v1::WorkerTelemetry>(heartbeat.telemetry());
  const int dropped = RepairTelemetry(
      goes_on ? *it->second.telemetry : v1::WorkerTelemetry::default_instance(), telemetry.get());
  if (it == reports_.end()) {
    MakeRoom();
    it = reports_.emplace(worker.name(), WorkerReport()).first;
  }
  it->second = {.worker = worker.name(),
                .incarnation = worker.incarnation(),
                .sequence = heartbeat.sequence(),
                .next_round = heartbeat.next_round(),
                .received_at = wall,
                .received_on = now,
                .telemetry = std::move(telemetry)};
  return dropped;
}

void WorkerReports::MakeRoom() {
  if (reports_.size() < max_) return;
  const auto longest = std::ranges::min_element(
      reports_, {}, [](const auto& entry) { return entry.second.received_on; });
  reports_.erase(longest);
}

void WorkerReports::Leave(const v1::WorkerIdentity& worker) {
  absl::MutexLock lock(&mu_);
  const auto it = reports_.find(worker.name());
  if (it != reports_.end() && it->second.incarnation == worker.incarnation()) reports_.erase(it);
}

std::vector<WorkerReport> WorkerReports::List(absl::Duration now) const {
  absl::MutexLock lock(&mu_);
  std::vector<WorkerReport> list;
  for (const auto& [name, report] : reports_) {
    if (now - report.received_on < kExpiry) list.push_back(report);
  }
  return list;
}

}  // namespace distro::server
