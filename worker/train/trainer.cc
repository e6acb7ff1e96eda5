#include "worker/train/trainer.h"

#include <cmath>
#include <utility>

#include "absl/base/casts.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/checkpoint/hf_folder.h"
#include "worker/train/evaluate.h"

namespace distro::worker {
namespace {

// The slot of `worker`, if it has one.
template <typename Slots>
std::optional<v1::Slot> FindSlot(const Slots& slots, const std::string& worker) {
  for (const v1::Slot& slot : slots) {
    if (slot.worker() == worker) return slot;
  }
  return std::nullopt;
}

void Divide(float divisor, TensorBuffer* buffer) {
  for (int i = 0; i < buffer->tensors(); ++i) {
    for (float& value : buffer->tensor(i)) value /= divisor;
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trainer>> Trainer::Create(TrainerOptions options, Parts parts,
                                                         Observer observer) {
  const uint32_t samples = parts.run->config().samples_per_worker();
  if (options.micro_batch_samples == 0) options.micro_batch_samples = static_cast<int>(samples);
  if (options.micro_batch_samples < 1 || samples % options.micro_batch_samples != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("micro_batch_samples: ", options.micro_batch_samples,
                     " does not divide the run's samples_per_worker, ", samples));
  }
  return absl::WrapUnique(new Trainer(std::move(options), parts, std::move(observer)));
}

Trainer::Trainer(TrainerOptions options, Parts parts, Observer observer)
    : options_(std::move(options)),
      parts_(parts),
      observer_(std::move(observer)),
      config_(parts.run->config()),
      gradient_buffer_(parts.replica->layout()) {
  if (config_.overlap() == 1) lookahead_.emplace(parts.replica->layout());
  summary_.worker = options_.worker;
  summary_.run_id = parts.run->run_id();
  summary_.parameters = parts.replica->layout().elements();
}

absl::Status Trainer::Run() {
  absl::Status status = Evaluate();
  // From here on the aggregator counts on this worker.
  if (status.ok()) status = Follow();
  while (status.ok() && parts_.replica->next_round().value() < config_.rounds()) status = Step();
  // The checkpoint first: a worker that is told to stop drops an evaluation.
  if (status.ok() && !options_.checkpoint_dir.empty())
    status = WriteCheckpoint(options_.checkpoint_dir);
  if (status.ok() && summary_.rounds_applied > 0) status = Evaluate();
  summary_.state_hash = parts_.replica->StateHash();
  Observe();
  return status;
}

absl::Status Trainer::CheckGoesOn() const {
  return parts_.exchange->stopped() ? absl::CancelledError("stopped") : absl::OkStatus();
}

absl::Status Trainer::Follow() {
  const Replica& replica = *parts_.replica;
  DISTRO_RETURN_IF_ERROR(
      parts_.exchange->Follow(&replica.layout(), replica.next_round(), replica.log_hash()));
  Observe();
  return absl::OkStatus();
}

StepState Trainer::State() const {
  StepState state = {.overlap = lookahead_.has_value(),
                     .round_open = open_.has_value() && open_round_ == parts_.replica->next_round(),
                     .has_gradient = gradient_.has_value()};
  if (!state.round_open) return state;
  state.uploaded = uploaded_round_ == open_round_;
  state.has_slot = FindSlot(open_->slots(), options_.worker).has_value();
  const bool last = open_round_.value() + 1 == config_.rounds();
  state.has_next_slot = !last && FindSlot(open_->next_slots(), options_.worker).has_value();
  state.event_ready = parts_.exchange->Ready();
  return state;
}

absl::Status Trainer::Step() {
  switch (NextAction(State())) {
    case StepAction::kTakeEvent:
      return TakeEvent();
    case StepAction::kGradient:
      return ComputeGradient(FindSlot(open_->slots(), options_.worker),
                             parts_.replica->parameters());
    case StepAction::kLookahead:
      return ComputeLookaheadGradient();
    case StepAction::kUpload:
      Upload();
      return absl::OkStatus();
  }
  return absl::InternalError("a step without an action");
}

absl::Status Trainer::TakeEvent() {
  absl::StatusOr<RoundEvent> event = absl::UnknownError("");
  {
    PhaseScope phase(parts_.phases, Phase::kWait);
    event = parts_.exchange->Next();
  }
  DISTRO_RETURN_IF_ERROR(event.status());
  if (auto* opened = std::get_if<OpenedRound>(&*event)) return Open(std::move(*opened));
  if (const auto* committed = std::get_if<CommittedRound>(&*event)) return Apply(*committed);
  return absl::OkStatus();
}

absl::Status Trainer::Open(OpenedRound opened) {
  for (const auto* slots : {&opened.open.slots(), &opened.open.next_slots()}) {
    const std::optional<v1::Slot> slot = FindSlot(*slots, options_.worker);
    if (!slot.has_value()) continue;
    DISTRO_RETURN_IF_ERROR(
        Annotate(CheckSlot(*slot), absl::StrCat("round ", opened.round.value())));
  }
  open_round_ = opened.round;
  open_ = std::move(opened.open);
  return absl::OkStatus();
}

absl::Status Trainer::CheckSlot(const v1::Slot& slot) const {
  const uint32_t micro_batch = options_.micro_batch_samples;
  if (slot.samples() <= config_.samples_per_worker() && slot.samples() % micro_batch == 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "a slot of ", slot.samples(), " samples: the run has ", config_.samples_per_worker(),
      " a worker, this worker's micro-batches ", micro_batch));
}

absl::Status Trainer::Apply(const CommittedRound& round) {
  {
    PhaseScope phase(parts_.phases, Phase::kApply);
    const int member = round.MemberIndex(options_.worker);
    const bool ours =
        member >= 0 && round.header->members(member).incarnation() == options_.incarnation;
    DISTRO_RETURN_IF_ERROR(parts_.replica->Apply(round));
    if (ours) parts_.optimizer->Feedback(round, member);
    CountOwnUpdate(round, ours ? member : -1);
  }
  return AfterRound();
}

void Trainer::CountOwnUpdate(const CommittedRound& round, int member) {
  ++summary_.rounds_applied;
  if (sent_round_ != round.round()) return;
  const Layout& layout = parts_.replica->layout();
  for (SegmentId segment(0); segment.value() < layout.segments(); segment = segment.Next()) {
    if (member >= 0 && round.Included(member, segment)) continue;
    ++summary_.updates_excluded;
    return;
  }
}

absl::Status Trainer::AfterRound() {
  const uint64_t round = parts_.replica->next_round().value();
  const auto due = [round](uint64_t interval) { return interval > 0 && round % interval == 0; };
  if (round < config_.rounds()) {
    if (due(config_.evaluation_interval_rounds())) DISTRO_RETURN_IF_ERROR(Evaluate());
    if (!options_.checkpoint_dir.empty() && due(options_.checkpoint_interval_rounds)) {
      DISTRO_RETURN_IF_ERROR(
          WriteCheckpoint(absl::StrCat(options_.checkpoint_dir, "/round-", round)));
    }
  }
  Observe();
  return absl::OkStatus();
}

absl::Status Trainer::ComputeGradient(const std::optional<v1::Slot>& slot,
                                      const TensorBuffer& parameters) {
  Gradient gradient;
  DISTRO_RETURN_IF_ERROR(AccumulateGradient(*slot, parameters, &gradient));
  PhaseScope phase(parts_.phases, Phase::kCompress);
  gradient.norm = parts_.optimizer->GradientNorm(gradient_buffer_);
  gradient.finite = std::isfinite(gradient.loss) && std::isfinite(gradient.norm);
  summary_.training_loss = gradient.loss;
  summary_.gradient_norm = gradient.norm;
  summary_.tokens += uint64_t{slot->samples()} * config_.sequence_length();
  gradient_ = gradient;
  return absl::OkStatus();
}

absl::Status Trainer::AccumulateGradient(const v1::Slot& slot, const TensorBuffer& parameters,
                                         Gradient* gradient) {
  const int micro_batches = static_cast<int>(slot.samples()) / options_.micro_batch_samples;
  std::vector<int32_t> tokens;
  for (int j = 0; j < micro_batches; ++j) {
    DISTRO_RETURN_IF_ERROR(CheckGoesOn());
    {
      PhaseScope phase(parts_.phases, Phase::kData);
      parts_.samples->ReadTraining(
          slot.first_sample() + static_cast<uint64_t>(j) * options_.micro_batch_samples,
          options_.micro_batch_samples, &tokens);
    }
    PhaseScope phase(parts_.phases, Phase::kForwardBackward);
    DISTRO_ASSIGN_OR_RETURN(
        const double loss,
        parts_.model->LossAndGradient(
            {.tokens = tokens, .sequences = options_.micro_batch_samples}, parameters,
            j == 0 ? Accumulation::kStore : Accumulation::kAdd, &gradient_buffer_));
    gradient->loss += loss / micro_batches;
  }
  if (micro_batches > 1) Divide(static_cast<float>(micro_batches), &gradient_buffer_);
  return absl::OkStatus();
}

absl::Status Trainer::ComputeLookaheadGradient() {
  {
    PhaseScope phase(parts_.phases, Phase::kCompress);
    parts_.optimizer->Lookahead(absl::bit_cast<float>(open_->step().eta_bits()),
                                parts_.replica->parameters(), &*lookahead_);
  }
  return ComputeGradient(FindSlot(open_->next_slots(), options_.worker), *lookahead_);
}

void Trainer::Upload() {
  PhaseScope phase(parts_.phases, Phase::kCompress);
  RoundUpdate update = {.round = open_round_,
                        .state_hash = parts_.replica->StateHash(),
                        .loss = gradient_->loss,
                        .abstain = !gradient_->finite,
                        .payloads = {}};
  summary_.learning_rate = absl::bit_cast<float>(open_->step().eta_bits());
  if (gradient_->finite) {
    update.payloads =
        parts_.optimizer->Compress(open_round_, open_->step(), gradient_buffer_, gradient_->norm);
    sent_round_ = open_round_;
    ++summary_.updates_sent;
  } else {
    parts_.log->Warning("step is not finite; abstaining", {{"round", open_round_.value()},
                                                           {"loss", gradient_->loss},
                                                           {"gradient_norm", gradient_->norm}});
    ++summary_.nonfinite_steps;
  }
  uploaded_round_ = open_round_;
  gradient_.reset();
  parts_.exchange->Upload(std::move(update));
}

absl::Status Trainer::Evaluate() {
  if (config_.held_out_fraction() == 0) return absl::OkStatus();
  PhaseScope phase(parts_.phases, Phase::kEvaluate);
  DISTRO_ASSIGN_OR_RETURN(
      const double loss,
      EvaluateHeldOut(*parts_.model, *parts_.samples, parts_.replica->parameters(),
                      config_.evaluation_samples(), options_.micro_batch_samples,
                      [this] { return CheckGoesOn(); }));
  if (!summary_.first_evaluation_loss.has_value()) summary_.first_evaluation_loss = loss;
  summary_.last_evaluation_loss = loss;
  parts_.log->Info("evaluated",
                   {{"round", parts_.replica->next_round().value()}, {"held_out_loss", loss}});
  return absl::OkStatus();
}

absl::Status Trainer::WriteCheckpoint(const std::string& dir) {
  PhaseScope phase(parts_.phases, Phase::kCheckpoint);
  DISTRO_RETURN_IF_ERROR(WriteCheckpointFolder(dir, parts_.run->model_config_json(),
                                               parts_.replica->layout(),
                                               parts_.replica->parameters()));
  summary_.checkpoint_dir = dir;
  parts_.log->Info("checkpoint written",
                   {{"round", parts_.replica->next_round().value()}, {"dir", dir}});
  return absl::OkStatus();
}

void Trainer::Observe() {
  summary_.next_round = parts_.replica->next_round().value();
  summary_.transfer = parts_.exchange->stats();
  for (int i = 0; i < kPhases; ++i)
    summary_.phases[i] = parts_.phases->Spent(static_cast<Phase>(i));
  summary_.wall_time = parts_.phases->Total();
  v1::WorkerTelemetry telemetry;
  telemetry.set_loss(summary_.training_loss);
  telemetry.set_gradient_norm(summary_.gradient_norm);
  telemetry.set_tokens(summary_.tokens);
  telemetry.set_sent_bytes(summary_.transfer.sent_payload_bytes);
  telemetry.set_received_bytes(summary_.transfer.received_payload_bytes);
  if (summary_.last_evaluation_loss.has_value())
    telemetry.set_evaluation_loss(*summary_.last_evaluation_loss);
  parts_.exchange->Report(parts_.replica->next_round(), parts_.replica->log_hash(), telemetry);
  observer_(summary_);
}

}  // namespace distro::worker
