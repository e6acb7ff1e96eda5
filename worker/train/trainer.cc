#include "worker/train/trainer.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/run/sample_pool.h"

namespace distro::worker {
namespace {

// Whether the aggregator's log does not continue the parameters.
bool NeedsResync(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return reason == "diverged" || reason == "pruned";
}

}  // namespace

absl::Status NoFiniteStep(uint64_t rounds) {
  if (rounds == 0) return absl::OkStatus();
  return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "not_finite",
                         absl::StrCat("no step was finite in the last ", rounds,
                                      " rounds of this worker: it contributed nothing"));
}

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(TrainerOptions options, Dependencies deps,
                                                         Observer observer) {
  const uint32_t samples = deps.run->config().samples_per_worker();
  if (options.micro_batch_samples == 0) options.micro_batch_samples = static_cast<int>(samples);
  if (options.micro_batch_samples < 1 || samples % options.micro_batch_samples != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("micro_batch_samples: ", options.micro_batch_samples,
                     " does not divide the run's samples_per_worker, ", samples));
  }
  if (options.stateless && !deps.learner->rule().takes_local_steps) {
    return absl::InvalidArgumentError(
        "stateless: only a worker of a run of deltas can do without its state: leave --stateless "
        "out");
  }
  return absl::WrapUnique(new Trainer(std::move(options), std::move(deps), std::move(observer)));
}

Trainer::Trainer(TrainerOptions options, Dependencies deps, Observer observer)
    : options_(std::move(options)),
      deps_(std::move(deps)),
      observer_(std::move(observer)),
      config_(deps_.run->config()),
      rounds_(config_.rounds()),
      gradient_step_({.learner = deps_.learner,
                      .objective = deps_.objective,
                      .phases = deps_.phases,
                      .goes_on = [this] { return CheckGoesOn(); }}),
      epoch_(deps_.run->epoch()),
      ready_(deps_.ready == nullptr) {
  summary_.worker = options_.worker;
  summary_.incarnation = options_.incarnation;
  summary_.run_id = deps_.run->run_id();
  summary_.parameters = deps_.learner->layout().elements();
}

void Trainer::Resume(const WorkerState& state) {
  senders_ = state.senders;
  pending_loss_ = state.pending_loss;
  pending_steps_ = static_cast<int>(state.pending_steps);
  pending_samples_ = state.pending_samples;
  epoch_ = std::max(epoch_, state.epoch);
}

absl::Status Trainer::Run() {
  // Before Follow: afterwards rounds wait for this worker, unless it is not ready.
  absl::Status status = ready_ ? Evaluate() : absl::OkStatus();
  if (status.ok()) status = FollowRun();
  while (NeedsResync(status) && ResyncMayHelp()) {
    status = Resync(status);
    if (status.ok()) status = FollowRun();
  }
  // The checkpoint first, because a stop request cancels the evaluation.
  if (status.ok() && !options_.checkpoint_dir.empty()) status = WriteLastCheckpoint();
  if (status.ok() && summary_.rounds_applied > 0) status = Evaluate();
  if (status.ok() && summary_.updates_sent == 0) status = NoFiniteStep(abstentions_in_a_row_);
  summary_.state_hash = deps_.learner->StateHash();
  Observe();
  return status;
}

absl::Status Trainer::FollowRun() {
  const Learner& learner = *deps_.learner;
  DISTRO_RETURN_IF_ERROR(
      deps_.exchange->Follow(&learner.layout(), learner.next_round(), learner.log_hash()));
  if (!ready_) {
    DISTRO_RETURN_IF_ERROR(CatchUp());
    Observe();
    DISTRO_RETURN_IF_ERROR(deps_.ready());
    DISTRO_RETURN_IF_ERROR(Evaluate());
    ready_ = true;
  }
  Observe();
  while (!HasDone()) DISTRO_RETURN_IF_ERROR(Step());
  return absl::OkStatus();
}

absl::Status Trainer::CatchUp() {
  const RoundId head(deps_.run->head_round());
  while (!HasDone() && (deps_.learner->next_round() < head || deps_.exchange->Ready()))
    DISTRO_RETURN_IF_ERROR(TakeEvent());
  return absl::OkStatus();
}

bool Trainer::HasDone() const {
  const RoundId next = deps_.learner->next_round();
  const bool enough = options_.updates > 0 && summary_.updates_sent >= options_.updates;
  return next.value() >= rounds_ || (enough && last_update_ < next);
}

absl::Status Trainer::CheckGoesOn() const {
  return deps_.exchange->stopped() ? absl::CancelledError("stopped") : absl::OkStatus();
}

StepState Trainer::State() const {
  StepState state = {.overlap = config_.overlap() == 1,
                     .round_open = open_.has_value() && open_round_ == deps_.learner->next_round(),
                     .has_gradient = gradient_.has_value()};
  if (!state.round_open) return state;
  state.uploaded = uploaded_round_ == open_round_;
  state.has_slot = FindSlot(open_->slots(), options_.worker).has_value();
  const bool last = open_round_.value() + 1 == rounds_;
  state.has_next_slot = !last && FindSlot(open_->next_slots(), options_.worker).has_value();
  const std::optional<PendingRound>& pending = deps_.learner->pending();
  state.has_pending = !state.uploaded && pending.has_value() && pending->round == open_round_ &&
                      (!binds_updates_to_slots() || state.has_slot) && PendingIsOfSlot();
  state.event_ready = deps_.exchange->Ready();
  return state;
}

absl::Status Trainer::Step() {
  switch (NextAction(State())) {
    case StepAction::kTakeEvent:
      return TakeEvent();
    case StepAction::kGradient:
      return ComputeGradient();
    case StepAction::kLookahead:
      return ComputeLookaheadGradient();
    case StepAction::kUpload:
      return Upload();
    case StepAction::kOffer:
      OfferPending();
      return absl::OkStatus();
  }
  return absl::InternalError("a step without an action");
}

absl::Status Trainer::TakeEvent() {
  absl::StatusOr<RoundEvent> event = absl::UnknownError("");
  {
    PhaseScope phase(deps_.phases, Phase::kWait);
    event = deps_.exchange->Next();
  }
  DISTRO_RETURN_IF_ERROR(event.status());
  if (auto* opened = std::get_if<OpenedRound>(&*event)) return Open(std::move(*opened));
  if (const auto* committed = std::get_if<CommittedRound>(&*event)) return Apply(*committed);
  return absl::OkStatus();
}

v1::Slot Trainer::SamplesFor(RoundId round,
                             const google::protobuf::RepeatedPtrField<v1::Slot>& slots) const {
  v1::Slot slot = *FindSlot(slots, options_.worker);
  if (config_.data() != v1::DATA_LOCAL) return slot;
  return OwnSamples(config_, round, SamplesOf(slot));
}

v1::Slot Trainer::WithNextSamples(v1::Slot slot) const {
  const bool last = open_round_.value() + 1 >= config_.rounds();
  if (last || !FindSlot(open_->next_slots(), options_.worker).has_value()) return slot;
  const v1::Slot next = SamplesFor(open_round_.Next(), open_->next_slots());
  for (const v1::SampleRange& range : RangesOf(next)) *slot.add_more() = range;
  return slot;
}

absl::Status Trainer::ComputeGradient() {
  const v1::Slot slot = SamplesFor(open_round_, open_->slots());
  deps_.objective->Expect(WithNextSamples(slot));
  if (options_.stateless) DISTRO_RETURN_IF_ERROR(deps_.learner->ForgetState());
  gradient_samples_ = FirstSample();
  if (rule().takes_local_steps)
    return TakeGradient(slot, gradient_step_.TakeLocalSteps(slot, open_->step(), window_ends_));
  return TakeGradient(slot, gradient_step_.Compute(slot));
}

absl::Status Trainer::ComputeLookaheadGradient() {
  const v1::Slot slot = SamplesFor(open_round_.Next(), open_->next_slots());
  deps_.objective->Expect(slot);
  return TakeGradient(slot, gradient_step_.ComputeAhead(slot, rule().rates(open_->step()).front()));
}

absl::Status Trainer::TakeGradient(const v1::Slot& slot, const absl::StatusOr<Gradient>& gradient) {
  DISTRO_RETURN_IF_ERROR(gradient.status());
  summary_.training_loss = gradient->loss;
  summary_.gradient_norm = gradient->norm;
  summary_.nonfinite_steps += gradient->skipped_steps;
  const uint64_t samples = gradient->local_steps == 0
                               ? SamplesOf(slot)
                               : uint64_t{config_.samples_per_worker()} * gradient->local_steps;
  summary_.tokens += samples * config_.sequence_length();
  gradient_ = *gradient;
  return absl::OkStatus();
}

// Prevents an endless loop: another resync helps only if a round was applied since the last.
bool Trainer::ResyncMayHelp() const {
  return !resynced_at_.has_value() ||
         (rounds_since_resync_ > 0 && *resynced_at_ != deps_.learner->next_round());
}

absl::Status Trainer::Resync(const absl::Status& why) {
  const RoundId at = deps_.learner->next_round();
  deps_.log->Warning("resync: taking the snapshot and the log again",
                     {{"round", at.value()}, {"reason", ReasonOf(why)}, {"status", why}});
  ++summary_.resyncs;
  resynced_at_ = at;
  rounds_since_resync_ = 0;
  open_.reset();
  uploaded_round_.reset();
  sent_round_.reset();
  gradient_.reset();
  DISTRO_RETURN_IF_ERROR(deps_.resync());
  TakeExtension(deps_.run->config().rounds());
  const std::optional<PendingRound>& pending = deps_.learner->pending();
  if (pending.has_value() && pending->round < deps_.learner->next_round())
    deps_.learner->ForgetPending();
  return absl::OkStatus();
}

absl::StatusOr<double> Trainer::LossOf(HeldOutText which) {
  return deps_.objective->HeldOutLoss(which, [this] { return CheckGoesOn(); });
}

absl::Status Trainer::Evaluate() {
  const bool holds_out = config_.held_out_fraction() > 0;
  const bool local = config_.data() == v1::DATA_LOCAL;
  if (!deps_.objective->evaluates() || (!holds_out && !local)) return absl::OkStatus();
  PhaseScope phase(deps_.phases, Phase::kEvaluate);
  DISTRO_ASSIGN_OR_RETURN(const double loss,
                          LossOf(local ? HeldOutText::kPublic : HeldOutText::kOwn));
  if (!summary_.first_evaluation_loss.has_value()) summary_.first_evaluation_loss = loss;
  summary_.last_evaluation_loss = loss;
  DISTRO_ASSIGN_OR_RETURN(summary_.momentum_norm, deps_.learner->MomentumNorm());
  const uint64_t round = deps_.learner->next_round().value();
  deps_.log->Info("evaluated", {{"round", round}, {"held_out_loss", loss}});
  if (!local || !holds_out) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(const double own, LossOf(HeldOutText::kOwn));
  if (!summary_.first_own_evaluation_loss.has_value()) summary_.first_own_evaluation_loss = own;
  summary_.last_own_evaluation_loss = own;
  deps_.log->Info("evaluated on own data", {{"round", round}, {"held_out_loss", own}});
  return absl::OkStatus();
}

void Trainer::Observe() {
  summary_.rounds = rounds_;
  summary_.next_round = deps_.learner->next_round().value();
  summary_.transfer = deps_.exchange->stats();
  for (int i = 0; i < kPhases; ++i) summary_.phases[i] = deps_.phases->Spent(static_cast<Phase>(i));
  summary_.wall_time = deps_.phases->Total();
  summary_.memory = deps_.learner->memory();
  summary_.collectives = deps_.learner->collective_time();
  if (const auto readings = deps_.learner->delta_readings()) summary_.deltas = readings;
  observer_(summary_);
  if (ready_) deps_.exchange->Report(deps_.learner->next_round(), deps_.learner->log_hash());
}

}  // namespace distro::worker
