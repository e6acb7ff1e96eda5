// Attributes the training thread's time to phases. Every moment since the start belongs to exactly
// one phase, so the phases sum to wall time. One thread switches phases; any thread may read.
#pragma once

#include <array>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace distro::worker {

enum class Phase {
  kIdle,
  kData,
  kForwardBackward,
  kCompress,
  kWait,
  kApply,
  kEvaluate,
  kCheckpoint
};
inline constexpr int kPhases = 8;

// Label of the phase in metrics and in the summary.
absl::string_view PhaseName(Phase phase);

class PhaseClock {
 public:
  // Starts in kIdle.
  explicit PhaseClock(const Clock* clock)
      : clock_(clock), since_(clock->MonotonicNow()), start_(since_) {}

  // Switches to another phase; returns the previous one.
  Phase Switch(Phase phase);

  // The underlying clock.
  const Clock& clock() const { return *clock_; }

  // Time spent in a phase so far, the running one included.
  absl::Duration Spent(Phase phase) const;
  // All of them at one moment.
  std::array<absl::Duration, kPhases> Spent() const;
  // Time since construction: the sum of all phases.
  absl::Duration Total() const;

 private:
  const Clock* const clock_;
  mutable absl::Mutex mu_;
  Phase phase_ ABSL_GUARDED_BY(mu_) = Phase::kIdle;
  absl::Duration since_ ABSL_GUARDED_BY(mu_);
  const absl::Duration start_;
  std::array<absl::Duration, kPhases> spent_ ABSL_GUARDED_BY(mu_);
};

// Switches to a phase for a scope, and back afterwards.
class PhaseScope {
 public:
  PhaseScope(PhaseClock* clock, Phase phase) : clock_(clock), before_(clock->Switch(phase)) {}
  ~PhaseScope() { clock_->Switch(before_); }
  PhaseScope(const PhaseScope&) = delete;
  PhaseScope& operator=(const PhaseScope&) = delete;

 private:
  PhaseClock* const clock_;
  const Phase before_;
};

}  // namespace distro::worker
