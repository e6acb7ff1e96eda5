#include "worker/train/trainer.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/model/checkpoint/round_folders.h"
#include "common/run/sample_pool.h"

namespace distro::worker {

bool NeedsResync(const absl::Status& status) {
  const std::string reason = ReasonOf(status);
  return reason == "diverged" || reason == "pruned";
}

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
      open_(&config_, options_.worker, options_.micro_batch_samples),
      own_(options_.incarnation),
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
  own_.Restore(state);
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
  return next.value() >= rounds_ || (enough && own_.last_sent() < next);
}

absl::Status Trainer::CheckGoesOn() const {
  return deps_.exchange->stopped() ? absl::CancelledError("stopped") : absl::OkStatus();
}

StepState Trainer::State() const {
  StepState state = {.overlap = config_.overlap() == 1,
                     .round_open = open_.is(deps_.learner->next_round()),
                     .has_gradient = gradient_.has_value()};
  if (!state.round_open) return state;
  state.uploaded = own_.has_answered(open_.round());
  state.has_slot = open_.slot().has_value();
  const bool last = open_.round().value() + 1 == rounds_;
  state.has_next_slot = !last && open_.next_slot().has_value();
  // With local data a slot is only a number of samples.
  const bool of_slot = !binds_updates_to_slots() ||
                       (state.has_slot && (config_.data() == v1::DATA_LOCAL ||
                                           own_.first_sample() == open_.first_sample()));
  const std::optional<PendingRound>& pending = deps_.learner->pending();
  state.has_pending =
      !state.uploaded && pending.has_value() && pending->round == open_.round() && of_slot;
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

absl::Status Trainer::ComputeGradient() {
  deps_.objective->Expect(open_.SamplesInAdvance());
  if (options_.stateless) DISTRO_RETURN_IF_ERROR(deps_.learner->ForgetState());
  gradient_samples_ = open_.first_sample();
  const v1::Slot slot = open_.Samples();
  if (!rule().takes_local_steps) return KeepGradient(slot, gradient_step_.Compute(slot));
  return KeepGradient(slot, gradient_step_.TakeLocalSteps(slot, open_.step(), open_.window_ends()));
}

absl::Status Trainer::ComputeLookaheadGradient() {
  const v1::Slot slot = open_.NextSamples();
  deps_.objective->Expect(slot);
  return KeepGradient(slot, gradient_step_.ComputeAhead(slot, rule().rates(open_.step()).front()));
}

absl::Status Trainer::KeepGradient(const v1::Slot& slot, const absl::StatusOr<Gradient>& gradient) {
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
  deps_.log->Warning("resync: loading the newest snapshot and the log after it",
                     {{"round", at.value()}, {"reason", ReasonOf(why)}, {"status", why}});
  ++summary_.resyncs;
  resynced_at_ = at;
  rounds_since_resync_ = 0;
  open_.Forget();
  own_.ForgetAnswers();
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

// The events of a round ---------------------------------------------------------------------------

absl::Status Trainer::Open(OpenedRound opened) {
  // Rounds that were over when this worker joined may arrive with their Open too, from the
  // aggregator's memory. An update for them would be late, and its gradient counted twice.
  if (opened.round.value() < deps_.run->head_round()) return absl::OkStatus();
  DISTRO_RETURN_IF_ERROR(CheckStep(opened.round, opened.open.step()));
  const bool again = open_.is(opened.round);
  const EpochId epoch = opened.epoch;
  DISTRO_RETURN_IF_ERROR(open_.Announce(std::move(opened), deps_.phases->clock()));
  epoch_ = std::max(epoch_, epoch);
  return again ? ChangeSlot() : absl::OkStatus();
}

absl::Status Trainer::ChangeSlot() {
  if (!binds_updates_to_slots()) return absl::OkStatus();
  if (!open_.slot().has_value()) return DropLateSteps();
  const uint64_t first = open_.first_sample();
  if (config_.data() == v1::DATA_LOCAL) gradient_samples_ = first;
  if (gradient_.has_value() && gradient_samples_ != first) return DropLateSteps();
  if (own_.has_answered(open_.round()) && own_.answered_first_sample() != first) own_.Retract();
  return absl::OkStatus();
}

absl::Status Trainer::CheckStep(RoundId round, const v1::StepParameters& step) const {
  if (rule().accepts(step)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "round ", round.value(), ": the aggregator's step parameters are not of the run's method"));
}

absl::Status Trainer::Upload() {
  const Gradient gradient = *gradient_;
  std::vector<SharedBytes> payloads;
  summary_.learning_rate = rule().rates(open_.step()).back();
  if (gradient.finite) {
    DISTRO_ASSIGN_OR_RETURN(payloads, Compress());
    own_.Make(gradient, gradient_samples_);
    own_.AddSender();
  }
  const bool abstains = payloads.empty();
  if (abstains) {
    deps_.log->Warning("step is not finite: the round gets no update from this worker",
                       {{"round", open_.round().value()},
                        {"loss", gradient.loss},
                        {"gradient_norm", gradient.norm}});
    if (gradient.skipped_steps == 0) ++summary_.nonfinite_steps;
  }
  gradient_.reset();
  HandIn({.round = open_.round(),
          .loss = gradient.loss,
          .abstain = abstains,
          .payloads = std::move(payloads)},
         gradient.local_steps, gradient_samples_);
  abstentions_in_a_row_ = abstains ? abstentions_in_a_row_ + 1 : 0;
  return abstentions_in_a_row_ < kMostAbstentions ? absl::OkStatus()
                                                  : NoFiniteStep(abstentions_in_a_row_);
}

absl::StatusOr<std::vector<SharedBytes>> Trainer::Compress() {
  PhaseScope phase(deps_.phases, Phase::kCompress);
  if (!rule().takes_local_steps)  // with local steps the rule has all gradients already
    DISTRO_RETURN_IF_ERROR(deps_.learner->TakeStep(open_.step(), 0, gradient_->norm));
  return deps_.learner->Compress(open_.round(), open_.step());
}

bool Trainer::HasLocalSteps() const {
  return rule().takes_local_steps && gradient_.has_value() && gradient_->finite;
}

absl::Status Trainer::KeepLocalSteps() {
  if (!HasLocalSteps()) return absl::OkStatus();
  DISTRO_RETURN_IF_ERROR(Compress().status());
  own_.Make(*gradient_, gradient_samples_);
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
  deps_.log->Info("offering the update of the open round again",
                  {{"round", open_.round().value()}});
  own_.AddSender();
  if (config_.data() == v1::DATA_LOCAL && binds_updates_to_slots())
    own_.MoveTo(open_.first_sample());
  HandIn({.round = open_.round(), .loss = own_.loss(), .payloads = deps_.learner->EncodePending()},
         own_.local_steps(), own_.first_sample());
}

void Trainer::HandIn(RoundUpdate update, int local_steps, uint64_t first_sample) {
  const auto hashes = deps_.learner->tensor_hashes();
  update.state_hash = deps_.learner->StateHash();
  update.tensor_hashes.assign(hashes.begin(), hashes.end());
  if (!update.abstain) {
    if (config_.has_round_window()) update.local_steps = static_cast<uint32_t>(local_steps);
    if (binds_updates_to_slots()) update.first_sample = first_sample;
  }
  if (own_.Answer(update.round, first_sample, update.abstain)) ++summary_.updates_sent;
  deps_.exchange->Upload(std::move(update));
  // Saved with the pending update: a later process learns its result from the log.
  const uint64_t interval = options_.state_interval_rounds;
  if (interval > 0 && open_.round().Next().value() % interval == 0) SaveState();
}

absl::Status Trainer::Apply(const CommittedRound& round) {
  DISTRO_RETURN_IF_ERROR(CheckStep(round.round(), round.header->step()));
  DISTRO_RETURN_IF_ERROR(DropLateSteps());
  {
    PhaseScope phase(deps_.phases, Phase::kApply);
    const int member = round.MemberIndex(options_.worker);
    DISTRO_RETURN_IF_ERROR(deps_.learner->Apply(round));
    if (own_.IsSender(round, member))
      DISTRO_RETURN_IF_ERROR(deps_.learner->Feedback(round, member));
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
  deps_.log->Info("the run was extended", {{"rounds", rounds}});
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

void Trainer::CountOwnUpdate(const CommittedRound& round, int member) {
  ++summary_.rounds_applied;
  if (const std::optional<Exclusion> excluded = own_.WhyExcluded(round, member)) {
    ++summary_.updates_excluded;
    ++summary_.excluded[static_cast<int>(*excluded)];
  }
  const RoundId head(deps_.run->head_round());
  if (const auto part = own_.PartIn(round, member, head)) TellOwnPart(*part);
}

void Trainer::TellOwnPart(OwnPart part) {
  const bool told = own_rounds_.uncounted_in_a_row() >= OwnRounds::kTold;
  if (own_rounds_.Add(part)) {
    deps_.log->Warning("this worker's work does not count",
                       {{"rounds_in_a_row", own_rounds_.uncounted_in_a_row()},
                        {"reason", own_rounds_.What()},
                        {"remedy", own_rounds_.Remedy()}});
  } else if (told && part == OwnPart::kCounted) {
    deps_.log->Info("this worker's work counts again");
  }
  summary_.uncounted_in_a_row = own_rounds_.uncounted_in_a_row();
  summary_.uncounted = own_rounds_.What();
}

// Files: only the last checkpoint ends the training when it cannot be written ---------------------

absl::Status Trainer::WriteLastCheckpoint() {
  PhaseScope phase(deps_.phases, Phase::kCheckpoint);
  DISTRO_ASSIGN_OR_RETURN(const Learner::HostTensors parameters, deps_.learner->parameters());
  const absl::Status status = WriteCheckpointFolder(
      options_.checkpoint_dir, deps_.run->model_config_json(), deps_.learner->layout(),
      parameters.pieces, deps_.companions == nullptr ? Companions() : *deps_.companions);
  Wrote(status, options_.checkpoint_dir);
  return Annotate(status, "checkpoint_dir: the last checkpoint is not written; start it again");
}

// The rounds matter more than a checkpoint between them: the next interval tries again.
void Trainer::WriteRoundCheckpoint() {
  PhaseScope phase(deps_.phases, Phase::kCheckpoint);
  const Companions none;
  const RoundId round = deps_.learner->next_round();
  const absl::StatusOr<Learner::HostTensors> parameters = deps_.learner->parameters();
  const absl::Status status =
      !parameters.ok()
          ? parameters.status()
          : WriteRoundFolder(
                options_.checkpoint_dir,
                {.round = round,
                 .config_json = &deps_.run->model_config_json(),
                 .layout = &deps_.learner->layout(),
                 .tensors = &parameters->pieces,
                 .companions = deps_.companions == nullptr ? &none : deps_.companions});
  Wrote(status, RoundFolder(options_.checkpoint_dir, round));
  if (!status.ok()) return;
  const absl::Status removed = RemoveOldRoundFolders(options_.checkpoint_dir, round, options_.keep);
  if (!removed.ok()) deps_.log->Warning("older checkpoint not removed", {{"reason", removed}});
}

void Trainer::Wrote(const absl::Status& status, const std::string& dir) {
  const uint64_t round = deps_.learner->next_round().value();
  if (!status.ok()) {
    ++summary_.failed_checkpoints;
    deps_.log->Error("checkpoint not written",
                     {{"round", round}, {"dir", dir}, {"reason", status}});
    return;
  }
  summary_.failed_checkpoints = 0;
  summary_.checkpoint_dir = dir;
  deps_.log->Info("checkpoint written", {{"round", round}, {"dir", dir}});
}

void Trainer::SaveState() {
  if (deps_.state == nullptr) return;
  PhaseScope phase(deps_.phases, Phase::kCheckpoint);
  const absl::Status status = WriteState();
  summary_.failed_saves = status.ok() ? 0 : summary_.failed_saves + 1;
  if (status.ok()) {
    deps_.log->Debug("state saved", {{"round", deps_.learner->next_round().value()}});
  } else {
    deps_.log->Error("state was not saved; the older one stays", {{"reason", status}});
  }
}

absl::Status Trainer::WriteState() {
  DISTRO_RETURN_IF_ERROR(KeepLocalSteps());
  DISTRO_RETURN_IF_ERROR(deps_.learner->KeepMore());
  DISTRO_ASSIGN_OR_RETURN(const Learner::Kept kept, deps_.learner->kept());
  WorkerState state = {.run_id = deps_.run->run_id(),
                       .worker = options_.worker,
                       .epoch = epoch_,
                       .next_round = deps_.learner->next_round(),
                       .local_steps = kept.local_steps};
  own_.Save(&state);
  return deps_.state->Save(state, kept.elements, *kept.optimizer);
}

}  // namespace distro::worker
