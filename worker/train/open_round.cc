#include "worker/train/open_round.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/method/base/learning_rate.h"
#include "common/net/wire/proto_time.h"
#include "common/run/sample_pool.h"
#include "common/run/schedule.h"
#include "worker/train/sample_reader.h"

namespace distro::worker {

OpenRound::OpenRound(const v1::RunConfig* config, std::string worker, int micro_batch_samples)
    : config_(config),
      worker_(std::move(worker)),
      micro_batch_samples_(static_cast<uint32_t>(micro_batch_samples)) {}

absl::Status OpenRound::Announce(OpenedRound opened, const Clock& clock) {
  DISTRO_RETURN_IF_ERROR(Annotate(Check(opened), absl::StrCat("round ", opened.round.value())));
  absl::Duration ends = absl::InfiniteDuration();
  if (opened.open.has_window())
    ends = opened.arrived.value_or(clock.MonotonicNow()) + FromProto(opened.open.window());
  window_ends_ = is(opened.round) ? std::min(window_ends_, ends) : ends;
  round_ = opened.round;
  open_ = std::move(opened.open);
  return absl::OkStatus();
}

absl::Status OpenRound::Check(const OpenedRound& opened) const {
  for (const auto* slots : {&opened.open.slots(), &opened.open.next_slots()}) {
    const std::optional<v1::Slot> slot = FindSlot(*slots, worker_);
    if (slot.has_value()) DISTRO_RETURN_IF_ERROR(CheckSlot(*slot));
  }
  if (opened.open.has_window() == config_->has_round_window()) return absl::OkStatus();
  return absl::InvalidArgumentError("the aggregator's window is not the run's round_window");
}

absl::Status OpenRound::CheckSlot(const v1::Slot& slot) const {
  const uint64_t samples = SamplesOf(slot);
  const bool allowed = samples >= 1 && samples <= SamplesOfRound(*config_);
  if (allowed && samples % (uint64_t{micro_batch_samples_} * StepsOfRound(*config_)) == 0)
    return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the aggregator assigned ", samples, " samples: the run has ",
                   SamplesOfRound(*config_), " a worker for ", StepsOfRound(*config_),
                   " steps, and this worker's micro-batches have ", micro_batch_samples_));
}

std::optional<v1::Slot> OpenRound::slot() const { return FindSlot(open_->slots(), worker_); }

std::optional<v1::Slot> OpenRound::next_slot() const {
  return FindSlot(open_->next_slots(), worker_);
}

v1::Slot OpenRound::SamplesFor(RoundId round, v1::Slot slot) const {
  if (config_->data() != v1::DATA_LOCAL) return slot;
  return OwnSamples(*config_, round, SamplesOf(slot));
}

v1::Slot OpenRound::SamplesInAdvance() const {
  v1::Slot samples = Samples();
  const bool last = round_.value() + 1 >= config_->rounds();
  if (last || !next_slot().has_value()) return samples;
  for (const v1::SampleRange& range : RangesOf(NextSamples())) *samples.add_more() = range;
  return samples;
}

}  // namespace distro::worker
