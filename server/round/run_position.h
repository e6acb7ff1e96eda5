// The position of a run: the round that is open or opens next, the owners of its samples and of the
// next round's, and the open round itself.
//
// Passive: guarded by the mutex of SharedRun. Times are monotonic and passed in.
//
//   position.Open(members, deadline, audited, now);   // then uploads go into *position.round()
//   header = position.MakeHeader(...);                // once all segments are closed
//   position.Finish(header);                          // once it is in the log
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/run/round/record.h"
#include "distro/v1/round.pb.h"
#include "server/log/round_log.h"
#include "server/log/run_identity.h"
#include "server/round/round.h"
#include "server/round/run_observer.h"
#include "server/session/membership.h"

namespace distro::server {

class RunPosition {
 public:
  // `run` is borrowed. If more than `max_workers` have samples, the last ones are dropped.
  RunPosition(const RunIdentity* run, EpochId epoch, uint32_t max_workers, RoundId head)
      : run_(run), epoch_(epoch), max_workers_(max_workers), head_(head) {}

  // Restores the position from the log, which has a start record; calls `learn` with the headers of
  // the newest rounds. Returns the members of the last one, or before the first round the workers
  // with samples, as ACTIVE.
  absl::StatusOr<std::vector<v1::Member>> Restore(
      const RoundLog& round_log, absl::FunctionRef<void(const v1::RoundHeader&)> learn);
  // The start record is written.
  void Start(const v1::StartHeader& start) { plan_ = PlanOf(start); }

  RoundId head() const { return head_; }  // open, or opens next
  // Of the run: those that it was created with, or more.
  uint64_t rounds() const { return extension_ ? extension_->rounds() : run_->config.rounds(); }
  // Not set: the run was not extended.
  const std::optional<v1::Extension>& extension() const { return extension_; }
  // The extension to `rounds` if it is decided now: it applies from the first round that is not
  // open.
  v1::Extension ExtensionTo(uint64_t rounds) const;
  // Extends the run. Does nothing if it has that many rounds already.
  void Extend(const v1::Extension& extension);
  // Rounds are left to open, and the head's record gives samples of one.
  bool has_rounds() const { return head_.value() < rounds(); }
  bool gives_samples() const { return head_.value() + 2 < rounds(); }
  const std::vector<v1::Slot>& slots() const { return plan_.slots; }
  Round* round() { return round_ ? &*round_ : nullptr; }  // null: none is open
  const Round* round() const { return round_ ? &*round_ : nullptr; }
  bool opened_before() const { return opened_before_; }  // a round was opened in this epoch
  // The deadline of the open or the last round, from Open.
  absl::Duration deadline() const { return deadline_; }
  // The monotonic deadline of the open round.
  absl::Duration deadline_at() const { return round_->opened_at() + deadline_; }
  // A segment of the open round closed without an expected worker.
  void CloseByDeadline() { by_deadline_ = true; }

  void Open(const Membership& members, absl::Duration deadline, SegmentId audited,
            absl::Duration now);
  // Workers whose updates count but who have no samples of the open round; at most as many as fit.
  std::vector<std::string> CountedWithoutSamples(const Membership& members) const;
  // Assigns them samples of the open round. Returns their number.
  size_t Reopen(const Membership& members);
  // The open round's Open message.
  v1::RoundOpen MakeOpen(absl::Duration now) const;

  // Checks an upload's round: OK if it is the head, open or not; "late" if it is over;
  // "wrong_round" if it has not begun.
  absl::Status CheckHead(RoundId round) const;

  // Creates the record of the open round; assigns samples.
  v1::RoundHeader MakeHeader(const Membership& members, uint64_t predecessor_hash, bool paused,
                             const Clock& clock);
  // The description of the open round for observers; `header` is borrowed.
  CommittedRoundInfo Describe(const v1::RoundHeader& header, absl::Duration now) const;
  // The open round is in the log with this header; the next one becomes the head.
  void Finish(const v1::RoundHeader& header);

 private:
  // A record is in the log: takes the slots of the rounds after it.
  void Advance(const v1::RoundHeader& header);

  // Constant after construction.
  const RunIdentity* const run_;
  const EpochId epoch_;
  const uint32_t max_workers_;

  RoundId head_;
  SlotPlan plan_;                  // of head_ and the round after it
  std::vector<uint32_t> medians_;  // of the record before head_
  std::optional<v1::Extension> extension_;
  std::optional<Round> round_;
  absl::Duration deadline_ = absl::InfiniteDuration();
  bool opened_before_ = false;
  bool by_deadline_ = false;
};

}  // namespace distro::server
