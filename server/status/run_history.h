// The history of this process's rounds for the status page: loss curves, pace, and for each worker
// when it was last included, why it was excluded, and the time from Open to its update. Bounded in
// memory; empty after a restart. Thread-safe.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "server/round/run_observer.h"
#include "server/status/loss_curve.h"

namespace distro::server {

inline constexpr size_t kCurvePoints = 512;
inline constexpr size_t kRecentRounds = 32;      // rounds for pace, exclusions and recent bytes
inline constexpr size_t kHistoryWorkers = 2048;  // workers to remember: those seen last

// A worker in the rounds of this process.
struct WorkerRounds {
  uint64_t rounds = 0;                         // whose records name it
  uint64_t included = 0;                       // of these, with at least one of its segments
  std::optional<uint64_t> last_included = {};  // round
  uint64_t missed_in_a_row = 0;
  // In the last record that includes it: local steps, if the run has a window, and weight.
  std::optional<uint64_t> local_steps = {};
  std::optional<uint64_t> weight = {};
  // Why the last record that names it does not include its whole update: "late", "partly late",
  // "probation", "abstained"; empty if it does.
  std::string excluded = {};
  std::optional<double> update_seconds = {};  // Open to its last byte, median of the last few
};

struct HistoryView {
  std::vector<LossCurve::Point> loss, eval_loss;
  uint64_t rounds = 0;  // committed by this process
  std::optional<double> rounds_a_minute =
      {};  // of the recent ones, and of the time since; not set before the first
  std::optional<double> round_seconds = {};  // median of the recent ones
  std::optional<double> excluded_ratio =
      {};  // of the updates that the recent ones could have counted
  std::optional<double> result_bytes = {};      // mean of the recent ones
  std::optional<absl::Duration> open_for = {};  // of the open round
  bool last_loss_missing = false;               // the last round had updates, and no finite loss
  uint64_t empty_rounds = 0;                    // the last ones, in which all workers abstained
  int most_expected = 0;                        // most workers that a round waited for
  std::optional<absl::Duration> since_mismatch = {};  // of a state hash
  std::map<std::string, WorkerRounds, std::less<>> workers = {};
};

class RunHistory final : public RunObserver {
 public:
  // `clock` is borrowed.
  explicit RunHistory(const Clock* clock) : clock_(clock) {}

  void OnRoundOpened(RoundId round, int expected) override;
  void OnRoundCommitted(const CommittedRoundInfo& info) override;
  void OnUpdateTimed(const std::string& worker, RoundId round, absl::Duration since_open) override;
  void OnStateHashMismatch(int workers) override;

  HistoryView View() const;

 private:
  struct RecentRound {
    absl::Duration opened_at, committed_at;
    uint64_t result_bytes = 0;
    int counting = 0;   // members whose votes would have counted
    int excluded = 0;   // of these, whose update was not fully included
    int abstained = 0;  // of these
  };
  struct Member {
    WorkerRounds rounds;
    uint64_t seen = 0;  // rounds_ then
    std::deque<double> update_seconds;
  };
  // Marks the worker as seen. nullptr if kHistoryWorkers others were seen in this round.
  Member* Find(const std::string& worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeMember(const v1::RoundHeader& header, int index, RecentRound* round)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TakeLosses(const CommittedRoundInfo& info) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FillPace(HistoryView* view) const ABSL_SHARED_LOCKS_REQUIRED(mu_);

  const Clock* const clock_;
  mutable absl::Mutex mu_;
  LossCurve loss_ ABSL_GUARDED_BY(mu_) = LossCurve(kCurvePoints);
  LossCurve eval_loss_ ABSL_GUARDED_BY(mu_) = LossCurve(kCurvePoints);
  std::optional<double> last_eval_loss_ ABSL_GUARDED_BY(mu_);
  std::deque<RecentRound> recent_ ABSL_GUARDED_BY(mu_);
  uint64_t rounds_ ABSL_GUARDED_BY(mu_) = 0;
  std::optional<absl::Duration> opened_at_ ABSL_GUARDED_BY(mu_);
  std::optional<absl::Duration> mismatch_at_ ABSL_GUARDED_BY(mu_);
  bool last_loss_missing_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t empty_rounds_ ABSL_GUARDED_BY(mu_) = 0;
  int most_expected_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<std::string, Member, std::less<>> workers_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::server
