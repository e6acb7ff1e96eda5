#include "worker/python/module_learner.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/checkpoint/snapshot.h"
#include "kernels/cpu/cpu_backend.h"
#include "worker/rules/deltas/delta_rule.h"

namespace distro::worker {
namespace {

std::vector<std::unique_ptr<Backend>> BackendPerThread(int threads) {
  std::vector<std::unique_ptr<Backend>> backends;
  for (int i = 0; i < threads; ++i) backends.push_back(MakeCpuBackend());
  return backends;
}

std::vector<Backend*> Borrow(const std::vector<std::unique_ptr<Backend>>& backends) {
  std::vector<Backend*> borrowed;
  for (const auto& backend : backends) borrowed.push_back(backend.get());
  return borrowed;
}

}  // namespace

ModuleLearner::ModuleLearner(const Layout* layout, ModuleTensors* module, UpdateRuleKind rule,
                             HandOver* program, int threads)
    : Learner(layout),
      module_(module),
      kind_(std::move(rule)),
      program_(program),
      backends_(BackendPerThread(threads)),
      updater_(layout, Borrow(backends_)),
      parameters_(*layout),
      rule_(layout, &kind_, threads),
      optimizer_(layout, &kind_, rule_.ranks()) {}

absl::Status ModuleLearner::Load(const std::string& snapshot_path, RoundId next_round,
                                 uint64_t log_hash) {
  DISTRO_RETURN_IF_ERROR(ReadSnapshot(snapshot_path, layout(), &parameters_));
  Begin(next_round, log_hash, updater_.Hash(parameters_));
  return absl::OkStatus();
}

absl::Status ModuleLearner::Apply(const CommittedRound& round) {
  return ApplyNext(round, updater_.threads(),
                   [this](const v1::StepParameters& step, DecodedRound decoded) {
                     decoded_ = std::move(decoded);
                     return updater_.Update(step, *decoded_, &parameters_);
                   });
}

absl::StatusOr<Learner::HostTensors> ModuleLearner::parameters() const {
  return HostTensors{.pieces = PiecesOf(parameters_), .copies = {}};
}

absl::Status ModuleLearner::MakeLookahead(float eta) {
  DISTRO_ASSIGN_OR_RETURN(const RunSpans module, module_->Elements());
  begun_ = true;
  DISTRO_RETURN_IF_ERROR(rule_.Lookahead(eta, SpansOf(&parameters_), module));
  return module_->ShowElements();
}

absl::Status ModuleLearner::BeginLocalSteps() {
  DISTRO_ASSIGN_OR_RETURN(const RunSpans module, module_->Elements());
  begun_ = true;
  DISTRO_RETURN_IF_ERROR(rule_.Copy(SpansOf(&parameters_), module));
  return module_->ShowElements();
}

absl::Status ModuleLearner::TakeGradient(const v1::StepParameters& step, int index, double norm) {
  if (!kind_.takes_local_steps) {
    DISTRO_ASSIGN_OR_RETURN(const RunSpans gradients, module_->Gradients());
    return rule_.TakeGradient(step, index, norm, gradients);
  }
  DISTRO_RETURN_IF_ERROR(rule_.TakeGradient(step, index, norm, {}));
  DISTRO_RETURN_IF_ERROR(module_->ScaleGradients(ClipScale(norm, step.clip_norm())));
  DISTRO_RETURN_IF_ERROR(program_
                             ->Ask({.kind = Request::Kind::kStep,
                                    .rate = kind_.rates(step)[index],
                                    .local_steps = rule_.local_steps()})
                             .status());
  return module_->ShowMasters();
}

absl::StatusOr<std::vector<SharedBytes>> ModuleLearner::Compress(RoundId round,
                                                                 const v1::StepParameters& step) {
  optimizer_.ForgetPending();
  const RunSpans parameters = SpansOf(&parameters_);
  RunSpans module = parameters;  // not used by a rule of gradients
  if (kind_.takes_local_steps) {
    DISTRO_ASSIGN_OR_RETURN(module, module_->ReadElements());
    DISTRO_ASSIGN_OR_RETURN(const bool finite, rule_.IsFinite(step, parameters, module));
    if (!finite) {
      DISTRO_RETURN_IF_ERROR(rule_.Abandon());
      DISTRO_RETURN_IF_ERROR(program_->Ask({.kind = Request::Kind::kReset}).status());
      return std::vector<SharedBytes>();
    }
    DISTRO_RETURN_IF_ERROR(ClipSteps(module));
  }
  DISTRO_RETURN_IF_ERROR(rule_.Compress(step, parameters, module));
  optimizer_.SetPending({.round = round, .k = static_cast<int>(step.kept_per_block())});
  return EncodePending();
}

absl::Status ModuleLearner::ClipSteps(const RunSpans& module) {
  if (kind_.delta_clip == 0) return absl::OkStatus();
  const RunSpans parameters = SpansOf(&parameters_);
  DISTRO_ASSIGN_OR_RETURN(const double norm, rule_.NormOfSteps(parameters, module));
  if (norm <= kind_.delta_clip) return absl::OkStatus();
  return rule_.ScaleSteps(static_cast<float>(kind_.delta_clip / norm), parameters, module);
}

absl::StatusOr<std::vector<SharedBytes>> ModuleLearner::EncodePending() {
  return optimizer_.Encode(rule_.threads());
}

absl::Status ModuleLearner::ForgetState() {
  optimizer_.ForgetPending();
  DISTRO_RETURN_IF_ERROR(rule_.Forget());
  return program_->Ask({.kind = Request::Kind::kReset}).status();
}

absl::StatusOr<double> ModuleLearner::MomentumNorm() { return rule_.MomentumNorm(); }

absl::Status ModuleLearner::Feedback(const CommittedRound& round, int member) {
  const std::optional<DecodedRound> decoded = std::exchange(decoded_, std::nullopt);
  if (!optimizer_.TakePending(round.round())) return absl::OkStatus();
  return rule_.Feedback(round, decoded.has_value() ? *decoded : DecodedRound(), member);
}

std::optional<DeltaReadings> ModuleLearner::delta_readings() const {
  const std::optional<DeltaSums> sums = rule_.sums();
  if (!sums.has_value()) return std::nullopt;
  return ReadingsOf(*sums);
}

MemoryByCategory ModuleLearner::memory() const {
  const auto array = static_cast<int64_t>(layout().elements() * sizeof(float));
  MemoryByCategory bytes = {};
  bytes[static_cast<int>(MemoryCategory::kParameters)] = array;
  bytes[static_cast<int>(MemoryCategory::kMomentum)] = kind_.element_arrays * array;
  bytes[static_cast<int>(MemoryCategory::kGradients)] = module_->GradientBytes();
  for (size_t i = 0; i < layout().tensors().size(); ++i) {
    const ModuleTensors::Memory memory = module_->MemoryOf(i);
    bytes[static_cast<int>(MemoryCategory::kWorkspace)] +=
        memory.module + memory.master + memory.host;
  }
  return bytes;
}

absl::StatusOr<Learner::Kept> ModuleLearner::kept() const {
  return Kept{.elements = optimizer_.elements(),
              .optimizer = &optimizer_,
              .copies = {},
              .local_steps = rule_.local_steps()};
}

absl::Status ModuleLearner::KeepMore() {
  if (!kind_.takes_local_steps) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(const double kept, program_->Ask({.kind = Request::Kind::kSave,
                                                            .local_steps = rule_.local_steps()}));
  if (kept != 0) return absl::OkStatus();
  return absl::InternalError("the program could not keep its inner optimizer's state");
}

absl::Status ModuleLearner::Restore(std::shared_ptr<const StateReader::Contents> contents) {
  optimizer_.ForgetPending();
  DISTRO_RETURN_IF_ERROR(rule_.Restore(*contents));
  if (contents->pending.has_value())
    optimizer_.SetPending({.round = contents->pending->round, .k = contents->pending->k});
  return absl::OkStatus();
}

}  // namespace distro::worker
