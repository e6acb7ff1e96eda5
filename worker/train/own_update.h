// This worker's updates: the newest one, whose result is still unknown, and which rounds it has
// answered. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/base/ids.h"
#include "common/run/record/committed_round.h"
#include "worker/state/state_file.h"
#include "worker/train/objective.h"
#include "worker/train/own_rounds.h"
#include "worker/train/summary.h"

namespace distro::worker {

class OwnUpdate {
 public:
  // `incarnation` is this process's.
  explicit OwnUpdate(uint64_t incarnation) : incarnation_(incarnation) {}

  // The newest update ----------------------------------------------------------------------------

  // An update of `gradient`, from a slot that begins at `first_sample`, was made and not sent.
  void Make(const Gradient& gradient, uint64_t first_sample);
  // This process sends it.
  void AddSender();
  // Of an earlier process, and for a later one.
  void Restore(const WorkerState& state);
  void Save(WorkerState* state) const;

  double loss() const { return loss_; }
  int local_steps() const { return local_steps_; }
  uint64_t first_sample() const { return first_sample_; }
  // The slot begins there now: with local data it is only a number of samples.
  void MoveTo(uint64_t first_sample) { first_sample_ = first_sample; }
  // Whether the record's member is a process that sent it; all have sent the same bytes, and the
  // record names the first.
  bool IsSender(const CommittedRound& round, int member) const;

  // Answers --------------------------------------------------------------------------------------

  // The round is answered, by an update or an abstention, for a slot that begins at `first_sample`.
  // Returns whether it is the first update that this process sends for the round.
  bool Answer(RoundId round, uint64_t first_sample, bool abstains);
  bool has_answered(RoundId round) const { return answered_ == round; }
  uint64_t answered_first_sample() const { return answered_first_sample_; }
  // The answer counts for nothing: the round was announced with another slot.
  void Retract() { answered_.reset(); }
  // A resync replaces the parameters: earlier answers are of another past.
  void ForgetAnswers();
  // The last round that this process has sent an update for.
  std::optional<RoundId> last_sent() const { return last_sent_; }

  // What became of them --------------------------------------------------------------------------

  // Why the update of the round is not wholly in the result; nullopt: it is, or none was sent.
  std::optional<Exclusion> WhyExcluded(const CommittedRound& round, int member) const;
  // This worker's part in the round; nullopt: it had none. `head` is the run's when it joined.
  std::optional<OwnPart> PartIn(const CommittedRound& round, int member, RoundId head) const;

 private:
  const uint64_t incarnation_;

  std::vector<uint64_t> senders_;  // incarnations of the processes that sent the newest update
  double loss_ = 0;
  int local_steps_ = 0;
  uint64_t first_sample_ = 0;

  std::optional<RoundId> answered_;
  uint64_t answered_first_sample_ = 0;
  std::optional<RoundId> sent_;       // the last answered by an update; not of before a resync
  std::optional<RoundId> last_sent_;  // the same, of before it too
};

}  // namespace distro::worker
