// The archiver's metrics (docs/metrics.md, "Archiver") and the HTTP endpoint that serves them.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/net/http/http_endpoint.h"
#include "common/net/telemetry/metrics.h"

namespace distro::tools {

// Activities of the replaying thread; the phases sum to its time since the replay began.
enum class ArchiverPhase { kWait, kApply, kSave, kPublish };
inline constexpr int kArchiverPhases = 4;

// "wait", "apply", "save", "publish".
absl::string_view ArchiverPhaseName(ArchiverPhase phase);

// Thread-safe; pointers are constant after construction.
struct ArchiverMetrics {
  // `clock` is borrowed.
  explicit ArchiverMetrics(const Clock* clock = Clock::Real());

  std::vector<prometheus::MetricFamily> Collect();
  ReadyReport Ready() const;
  // The aggregator answered just now.
  void Answered() { answered_at = absl::ToInt64Nanoseconds(clock->MonotonicNow()); }

  const Clock* const clock;

  MetricsRegistry registry{"distro_archiver_"};
  Gauge* round;
  Gauge* lag_rounds;
  Gauge* snapshot_round;
  Counter* replayed_rounds;
  Counter* state_hash_mismatches;
  Counter* snapshots_uploaded;
  Counter* folders_published;
  Counter* failures_save;
  Counter* failures_publish;
  Counter* failures_upload;
  Counter* failures_command;
  Counter* reconnects;
  Counter* received_bytes;
  std::array<Counter*, kArchiverPhases> phases;
  std::atomic<bool> ready = false;
  std::atomic<bool> falls_behind = false;
  static constexpr int64_t kNever = -1;
  std::atomic<int64_t> answered_at = kNever;  // monotonic nanoseconds
};

// Adds its lifetime to a phase. All borrowed.
class ArchiverPhaseScope {
 public:
  ArchiverPhaseScope(ArchiverMetrics* metrics, const Clock* clock, ArchiverPhase phase)
      : metrics_(metrics), clock_(clock), phase_(phase), begin_(clock->MonotonicNow()) {}
  ~ArchiverPhaseScope() {
    metrics_->phases[static_cast<int>(phase_)]->Increment(
        absl::ToDoubleSeconds(clock_->MonotonicNow() - begin_));
  }
  ArchiverPhaseScope(const ArchiverPhaseScope&) = delete;
  ArchiverPhaseScope& operator=(const ArchiverPhaseScope&) = delete;

 private:
  ArchiverMetrics* const metrics_;
  const Clock* const clock_;
  const ArchiverPhase phase_;
  const absl::Duration begin_;
};

}  // namespace distro::tools
