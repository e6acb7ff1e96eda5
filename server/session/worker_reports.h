// The last readings of each worker, as its heartbeats brought them: what /metrics/workers and the
// status page show (docs/metrics.md, "Workers"). Never durable: after a restart of the aggregator
// each worker's next heartbeat brings its absolute counters again.
//
// Thread-safe. No clock of its own: who calls says when it is.
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
  uint64_t incarnation = 0;  // counters count from its start
  uint64_t sequence = 0;
  uint64_t next_round = 0;
  absl::Time received_at;                                // wall time, for people and for Prometheus
  absl::Duration received_on;                            // monotonic
  std::shared_ptr<const v1::WorkerTelemetry> telemetry;  // repaired, never null
};

class WorkerReports {
 public:
  // How long readings stay when nothing more is heard.
  static constexpr absl::Duration kExpiry = absl::Minutes(10);
  // Workers at most; above, the one that was silent the longest makes room.
  static constexpr size_t kDefaultMax = 1024;

  explicit WorkerReports(size_t max_workers = kDefaultMax) : max_(max_workers) {}

  // Takes the readings of a heartbeat that was let in; the label is the name that the aggregator
  // let in, nothing of the telemetry. A sequence not above the last of the same incarnation changes
  // nothing. Counters never go back but with another incarnation. Returns how many values were
  // dropped (common/wire/worker_readings.h).
  int Take(const v1::HeartbeatRequest& heartbeat, absl::Time wall, absl::Duration now);

  // The worker left: its readings go at once. Of another incarnation than the last: changes
  // nothing.
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
