// The newest round that the aggregator announced, and this worker's samples in it. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/feed/round_assembler.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"

namespace distro::worker {

class OpenRound {
 public:
  // `config` is borrowed. `micro_batch_samples` divides every slot's samples of a step.
  OpenRound(const v1::RunConfig* config, std::string worker, int micro_batch_samples);

  // Takes an announcement. A round announced again keeps its first window. InvalidArgument: a slot
  // of this worker, or a window, that the run does not have; nothing changes.
  absl::Status Announce(OpenedRound opened, const Clock& clock);
  void Forget() { open_.reset(); }

  // Whether `round` was announced, and none after it.
  bool is(RoundId round) const { return open_.has_value() && round_ == round; }

  // The functions below require a round that was announced and not forgotten.

  RoundId round() const { return round_; }
  const v1::StepParameters& step() const { return open_->step(); }
  // Monotonic, of the clock; infinite without a window.
  absl::Duration window_ends() const { return window_ends_; }
  // This worker's slot of the round, and of the one after it, as announced; none: it has no
  // samples. With local data a slot is only a number of samples.
  std::optional<v1::Slot> slot() const;
  std::optional<v1::Slot> next_slot() const;
  // What this worker reads for its slot: the slot's samples or, with local data, its own. Require
  // the slot.
  v1::Slot Samples() const { return SamplesFor(round_, *slot()); }
  v1::Slot NextSamples() const { return SamplesFor(round_.Next(), *next_slot()); }
  // Samples(), and behind them NextSamples() if the round is not the run's last.
  v1::Slot SamplesInAdvance() const;
  // The first index of the slot. Requires one.
  uint64_t first_sample() const { return slot()->first_sample(); }

 private:
  absl::Status Check(const OpenedRound& opened) const;
  absl::Status CheckSlot(const v1::Slot& slot) const;
  v1::Slot SamplesFor(RoundId round, v1::Slot slot) const;

  const v1::RunConfig* const config_;
  const std::string worker_;
  const uint32_t micro_batch_samples_;

  std::optional<v1::RoundOpen> open_;
  RoundId round_;
  absl::Duration window_ends_;
};

}  // namespace distro::worker
