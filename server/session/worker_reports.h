// The last readings of each worker from its heartbeats, for /metrics/workers and the status page
// (docs/metrics.md, "Workers"). In memory only: after a restart of the aggregator, each worker's
// next heartbeat has its absolute counters.
//
// Thread-safe. The caller passes the time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "distro/v1/session.pb.h"
#include "distro/v1/telemetry.pb.h"

namespace distro::server {

struct WorkerReport {
  std::string worker;
  uint64_t incarnation = 0;  // counters start at 0 in each
  uint64_t sequence = 0;
  uint64_t next_round = 0;
  absl::Time received_at;                                // wall time, for display and Prometheus
  absl::Duration received_on;                            // monotonic
  std::shared_ptr<const v1::WorkerTelemetry> telemetry;  // repaired, never null
};

class WorkerReports {
 public:
  // How long readings are kept without a heartbeat.
  static constexpr absl::Duration kExpiry = absl::Minutes(10);
  // Maximum number of workers; beyond it the one that was silent longest is dropped.
  static constexpr size_t kDefaultMax = 1024;

  explicit WorkerReports(size_t max_workers = kDefaultMax) : max_(max_workers) {}

  // Stores the readings of an accepted heartbeat. The label is the authenticated name, not taken
  // from the telemetry. Ignores a sequence not above the last of the same incarnation. Counters
  // decrease only with a new incarnation. Returns how many values were dropped
  // (common/net/wire/worker_readings.h).
  int Take(const v1::HeartbeatRequest& heartbeat, absl::Time wall, absl::Duration now);

  // The worker left: drops its readings. Ignored for another incarnation than the last.
  void Leave(const v1::WorkerIdentity& worker);

  // Ascending by name, without those that expired.
  std::vector<WorkerReport> List(absl::Duration now) const;

 private:
  void MakeRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const size_t max_;
  mutable absl::Mutex mu_;
  std::map<std::string, WorkerReport, std::less<>> reports_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::server
