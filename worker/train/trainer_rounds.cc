// Trainer: the events of a round: it opens, gets this worker's update, is committed and applied.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/method/base/learning_rate.h"
#include "common/net/wire/proto_time.h"
#include "common/run/sample_pool.h"
#include "common/run/schedule.h"
#include "worker/train/trainer.h"

namespace distro::worker {

absl::Status Trainer::Open(OpenedRound opened) {
  // Rounds that were over when this worker joined may arrive with their Open too, from the
  // aggregator's memory. An update for them would be late, and its gradient counted twice.
  if (opened.round.value() < deps_.run->head_round()) return absl::OkStatus();
  for (const auto* slots : {&opened.open.slots(), &opened.open.next_slots()}) {
    const std::optional<v1::Slot> slot = FindSlot(*slots, options_.worker);
    if (!slot.has_value()) continue;
    DISTRO_RETURN_IF_ERROR(
        Annotate(CheckSlot(*slot), absl::StrCat("round ", opened.round.value())));
  }
  DISTRO_RETURN_IF_ERROR(CheckStep(opened.round, opened.open.step()));
  if (opened.open.has_window() != config_.has_round_window())
    return absl::InvalidArgumentError(
        absl::StrCat("round ", opened.round.value(), ": its window is not the run's"));
  const absl::Duration ends = WindowEnds(opened);
  // A round announced again after a reconnect keeps its first window.
  const bool again = open_.has_value() && open_round_ == opened.round;
  window_ends_ = again ? std::min(window_ends_, ends) : ends;
  epoch_ = std::max(epoch_, opened.epoch);
  open_round_ = opened.round;
  open_ = std::move(opened.open);
  return again ? ChangeSlot() : absl::OkStatus();
}

absl::Status Trainer::ChangeSlot() {
  if (!binds_updates_to_slots()) return absl::OkStatus();
  const std::optional<v1::Slot> slot = FindSlot(open_->slots(), options_.worker);
  if (!slot.has_value()) return DropLateSteps();
  if (config_.data() == v1::DATA_LOCAL) gradient_samples_ = slot->first_sample();
  if (gradient_.has_value() && gradient_samples_ != slot->first_sample()) return DropLateSteps();
  if (uploaded_round_ == open_round_ && uploaded_samples_ != slot->first_sample())
    uploaded_round_.reset();
  return absl::OkStatus();
}

absl::Duration Trainer::WindowEnds(const OpenedRound& opened) const {
  if (!opened.open.has_window()) return absl::InfiniteDuration();
  return opened.arrived.value_or(deps_.phases->clock().MonotonicNow()) +
         FromProto(opened.open.window());
}

absl::Status Trainer::CheckSlot(const v1::Slot& slot) const {
  const uint32_t micro_batch = options_.micro_batch_samples;
  const uint64_t samples = SamplesOf(slot);
  const bool allowed = samples >= 1 && samples <= SamplesOfRound(config_);
  if (allowed && samples % (uint64_t{micro_batch} * StepsOfRound(config_)) == 0)
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "a slot of ", samples, " samples: the run has ", SamplesOfRound(config_), " a worker for ",
      StepsOfRound(config_), " steps, this worker's micro-batches ", micro_batch));
}

absl::Status Trainer::CheckStep(RoundId round, const v1::StepParameters& step) const {
  if (rule().accepts(step)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("round ", round.value(), ": its step is not one of the run's method"));
}

absl::Status Trainer::Upload() {
  RoundUpdate update = {.round = open_round_,
                        .state_hash = 0,
                        .loss = gradient_->loss,
                        .local_steps = StatedSteps(gradient_->local_steps),
                        .first_sample = StatedSamples(gradient_samples_),
                        .abstain = !gradient_->finite,
                        .payloads = {}};
  summary_.learning_rate = rule().rates(open_->step()).back();
  if (gradient_->finite) {
    DISTRO_ASSIGN_OR_RETURN(update.payloads, Compress());
    update.abstain = update.payloads.empty();
    senders_ = {options_.incarnation};
    pending_loss_ = gradient_->loss;
    pending_steps_ = gradient_->local_steps;
    pending_samples_ = gradient_samples_;
  }
  if (update.abstain) {
    update.local_steps = 0;
    update.first_sample = 0;
    deps_.log->Warning("step is not finite; abstaining", {{"round", open_round_.value()},
                                                          {"loss", gradient_->loss},
                                                          {"gradient_norm", gradient_->norm}});
    if (gradient_->skipped_steps == 0) ++summary_.nonfinite_steps;
  }
  gradient_.reset();
  uploaded_samples_ = gradient_samples_;
  const bool abstains = update.abstain;
  HandIn(std::move(update));
  return CountAbstention(abstains);
}

absl::Status Trainer::CountAbstention(bool abstained) {
  abstentions_in_a_row_ = abstained ? abstentions_in_a_row_ + 1 : 0;
  if (abstentions_in_a_row_ < kMostAbstentions) return absl::OkStatus();
  return NoFiniteStep(abstentions_in_a_row_);
}

absl::StatusOr<std::vector<SharedBytes>> Trainer::Compress() {
  PhaseScope phase(deps_.phases, Phase::kCompress);
  if (!rule().takes_local_steps)  // with local steps the rule has all gradients already
    DISTRO_RETURN_IF_ERROR(deps_.learner->TakeGradient(open_->step(), 0, gradient_->norm));
  return deps_.learner->Compress(open_round_, open_->step());
}

bool Trainer::HasLocalSteps() const {
  return rule().takes_local_steps && gradient_.has_value() && gradient_->finite;
}

absl::Status Trainer::KeepLocalSteps() {
  if (!HasLocalSteps()) return absl::OkStatus();
  DISTRO_RETURN_IF_ERROR(Compress().status());
  senders_.clear();
  pending_loss_ = gradient_->loss;
  pending_steps_ = gradient_->local_steps;
  pending_samples_ = gradient_samples_;
  gradient_.reset();
  return absl::OkStatus();
}

absl::Status Trainer::DropLateSteps() {
  if (!rule().takes_local_steps || !gradient_.has_value()) return absl::OkStatus();
  if (HasLocalSteps()) {
    DISTRO_RETURN_IF_ERROR(Compress().status());
    deps_.learner->ForgetPending();
  }
  gradient_.reset();
  return absl::OkStatus();
}

void Trainer::OfferPending() {
  deps_.log->Info("offering the update of the open round again", {{"round", open_round_.value()}});
  if (std::find(senders_.begin(), senders_.end(), options_.incarnation) == senders_.end())
    senders_.push_back(options_.incarnation);
  if (config_.data() == v1::DATA_LOCAL && binds_updates_to_slots())
    pending_samples_ = FirstSample();
  uploaded_samples_ = pending_samples_;
  HandIn({.round = open_round_,
          .state_hash = 0,
          .loss = pending_loss_,
          .local_steps = StatedSteps(pending_steps_),
          .first_sample = StatedSamples(pending_samples_),
          .abstain = false,
          .payloads = deps_.learner->EncodePending()});
}

void Trainer::HandIn(RoundUpdate update) {
  const auto hashes = deps_.learner->tensor_hashes();
  update.state_hash = deps_.learner->StateHash();
  update.tensor_hashes.assign(hashes.begin(), hashes.end());
  uploaded_round_ = open_round_;
  if (!update.abstain) {
    sent_round_ = open_round_;
    if (last_update_ != open_round_) ++summary_.updates_sent;
    last_update_ = open_round_;
  }
  deps_.exchange->Upload(std::move(update));
  // Saved with the pending update: a later process learns its result from the log.
  const uint64_t interval = options_.state_interval_rounds;
  if (interval > 0 && open_round_.Next().value() % interval == 0) SaveState();
}

absl::Status Trainer::Apply(const CommittedRound& round) {
  DISTRO_RETURN_IF_ERROR(CheckStep(round.round(), round.header->step()));
  DISTRO_RETURN_IF_ERROR(DropLateSteps());
  {
    PhaseScope phase(deps_.phases, Phase::kApply);
    const int member = round.MemberIndex(options_.worker);
    DISTRO_RETURN_IF_ERROR(deps_.learner->Apply(round));
    if (IsSender(round, member)) DISTRO_RETURN_IF_ERROR(deps_.learner->Feedback(round, member));
    CountOwnUpdate(round, member);
    epoch_ = std::max(epoch_, EpochId(round.header->epoch()));
    ++rounds_since_resync_;
  }
  TakeExtension(round.header->extension().rounds());
  return AfterRound();
}

void Trainer::TakeExtension(uint64_t rounds) {
  if (rounds <= rounds_) return;
  rounds_ = rounds;
  deps_.log->Info("the run has more rounds", {{"rounds", rounds}});
}

bool Trainer::IsSender(const CommittedRound& round, int member) const {
  if (member < 0) return false;
  const uint64_t incarnation = round.header->members(member).incarnation();
  return std::find(senders_.begin(), senders_.end(), incarnation) != senders_.end();
}

absl::Status Trainer::AfterRound() {
  const uint64_t round = deps_.learner->next_round().value();
  const auto due = [round](uint64_t interval) { return interval > 0 && round % interval == 0; };
  if (round < rounds_) {
    if (due(config_.evaluation_interval_rounds())) DISTRO_RETURN_IF_ERROR(Evaluate());
    if (!options_.checkpoint_dir.empty() && due(options_.checkpoint_interval_rounds))
      WriteRoundCheckpoint();
  }
  Observe();
  return absl::OkStatus();
}

}  // namespace distro::worker
