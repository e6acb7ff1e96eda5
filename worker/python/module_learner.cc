#include "worker/python/module_learner.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/snapshot.h"
#include "kernels/cpu/cpu_backend.h"
#include "worker/optimizer/delta_rule.h"

namespace distro::worker {
namespace {

std::vector<std::unique_ptr<Backend>> BackendPerCore() {
  std::vector<std::unique_ptr<Backend>> backends;
  for (int i = 0; i < Cores(); ++i) backends.push_back(MakeCpuBackend());
  return backends;
}

std::vector<Backend*> Borrow(const std::vector<std::unique_ptr<Backend>>& backends) {
  std::vector<Backend*> borrowed;
  for (const auto& backend : backends) borrowed.push_back(backend.get());
  return borrowed;
}

std::vector<TensorBuffer> MakeElements(const Layout& layout, int arrays) {
  std::vector<TensorBuffer> elements;
  for (int i = 0; i < arrays; ++i) elements.emplace_back(layout);
  return elements;
}

void Copy(const RunSpans& from, const RunSpans& to) {
  for (size_t i = 0; i < from.size(); ++i) std::ranges::copy(from[i], to[i].begin());
}

}  // namespace

ModuleLearner::ModuleLearner(const Layout* layout, const ModuleTensors* module, UpdateRuleKind rule,
                             HandOver* program)
    : Learner(layout),
      module_(module),
      kind_(std::move(rule)),
      program_(program),
      backends_(BackendPerCore()),
      updater_(layout, Borrow(backends_)),
      shard_(host_.Of({.layout = layout, .runs = WholeRuns(*layout)})),
      parameters_(*layout),
      elements_(MakeElements(*layout, kind_.element_arrays)),
      rule_(kind_.make(shard_, Elements())),
      optimizer_(layout, &kind_, {{.rule = rule_.get(), .runs = shard_.runs}}),
      row_sums_(shard_) {}

RunSpans ModuleLearner::SpansOf(TensorBuffer* buffer) {
  RunSpans spans;
  for (int i = 0; i < buffer->tensors(); ++i) spans.push_back(buffer->tensor(i));
  return spans;
}

std::vector<RunSpans> ModuleLearner::Elements() {
  std::vector<RunSpans> spans;
  for (TensorBuffer& buffer : elements_) spans.push_back(SpansOf(&buffer));
  return spans;
}

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
  return rule_->Lookahead(eta, SpansOf(&parameters_), module);
}

absl::Status ModuleLearner::BeginLocalSteps() {
  DISTRO_ASSIGN_OR_RETURN(const RunSpans module, module_->Elements());
  Copy(SpansOf(&parameters_), module);
  begun_ = true;
  return absl::OkStatus();
}

absl::StatusOr<double> ModuleLearner::NormOf(const RunSpans& elements) {
  std::vector<double> rows(BlockRows(layout()));
  DISTRO_RETURN_IF_ERROR(row_sums_.Of(elements, absl::MakeSpan(rows)));
  return worker::NormOf(layout(), rows);
}

absl::StatusOr<double> ModuleLearner::GradientNorm() {
  DISTRO_ASSIGN_OR_RETURN(const RunSpans gradients, module_->Gradients());
  return NormOf(gradients);
}

absl::Status ModuleLearner::TakeGradient(const v1::StepParameters& step, int index, double norm) {
  DISTRO_ASSIGN_OR_RETURN(const RunSpans gradients, module_->Gradients());
  DISTRO_RETURN_IF_ERROR(rule_->TakeGradient(step, index, norm, gradients, {}));
  if (!kind_.takes_local_steps) return absl::OkStatus();
  const float scale = ClipScale(norm, step.clip_norm());
  for (const absl::Span<float> gradient : gradients) {
    for (float& element : gradient) element *= scale;
  }
  return program_
      ->Ask({.kind = Request::Kind::kStep,
             .rate = std::bit_cast<float>(step.deltas().inner_rate_bits(index)),
             .local_steps = rule_->local_steps()})
      .status();
}

absl::StatusOr<std::vector<SharedBytes>> ModuleLearner::Compress(RoundId round,
                                                                 const v1::StepParameters& step) {
  optimizer_.ForgetPending();
  DISTRO_ASSIGN_OR_RETURN(const RunSpans module, module_->Elements());
  const RunSpans parameters = SpansOf(&parameters_);
  if (kind_.takes_local_steps) {
    DISTRO_ASSIGN_OR_RETURN(const bool finite, rule_->IsFinite(step, parameters, module));
    if (!finite) {
      DISTRO_RETURN_IF_ERROR(rule_->Abandon());
      DISTRO_RETURN_IF_ERROR(program_->Ask({.kind = Request::Kind::kReset}).status());
      return std::vector<SharedBytes>();
    }
    DISTRO_RETURN_IF_ERROR(ClipSteps(module));
  }
  DISTRO_RETURN_IF_ERROR(rule_->Compress(step, parameters, module));
  optimizer_.SetPending({.round = round, .k = static_cast<int>(step.kept_per_block())});
  return EncodePending();
}

absl::Status ModuleLearner::ClipSteps(const RunSpans& module) {
  if (kind_.delta_clip == 0) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(const RunSpans done, module_->Gradients());  // which were used
  const RunSpans parameters = SpansOf(&parameters_);
  for (size_t i = 0; i < done.size(); ++i)
    DISTRO_RETURN_IF_ERROR(shard_.inner->Subtract(module[i], parameters[i], done[i]));
  DISTRO_ASSIGN_OR_RETURN(const double norm, NormOf(done));
  if (norm <= kind_.delta_clip) return absl::OkStatus();
  const auto scale = static_cast<float>(kind_.delta_clip / norm);
  for (size_t i = 0; i < module.size(); ++i)
    DISTRO_RETURN_IF_ERROR(shard_.inner->ScaleFrom(scale, parameters[i], module[i]));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<SharedBytes>> ModuleLearner::EncodePending() {
  std::vector<SharedBytes> payloads(layout().segments());
  RunParallel(Cores(), static_cast<int64_t>(payloads.size()), [&](int, int64_t i) {
    payloads[i] = optimizer_.EncodeSegment(SegmentId(static_cast<uint32_t>(i)));
  });
  return payloads;
}

absl::Status ModuleLearner::ForgetState() {
  optimizer_.ForgetPending();
  DISTRO_RETURN_IF_ERROR(rule_->Forget());
  return program_->Ask({.kind = Request::Kind::kReset}).status();
}

absl::StatusOr<double> ModuleLearner::MomentumNorm() { return NormOf(Elements()[0]); }

absl::Status ModuleLearner::Feedback(const CommittedRound& round, int member) {
  const std::optional<DecodedRound> decoded = std::exchange(decoded_, std::nullopt);
  if (!optimizer_.TakePending(round.round())) return absl::OkStatus();
  return rule_->Feedback(round, decoded.has_value() ? *decoded : DecodedRound(), member);
}

std::optional<DeltaReadings> ModuleLearner::delta_readings() const {
  const std::optional<DeltaSums> sums = rule_->sums();
  if (!sums.has_value()) return std::nullopt;
  return ReadingsOf(*sums);
}

MemoryByCategory ModuleLearner::memory() const {
  const auto array = static_cast<int64_t>(layout().elements() * sizeof(float));
  MemoryByCategory bytes = {};
  bytes[static_cast<int>(MemoryCategory::kParameters)] = array;
  bytes[static_cast<int>(MemoryCategory::kGradients)] = array;
  bytes[static_cast<int>(MemoryCategory::kMomentum)] = kind_.element_arrays * array;
  bytes[static_cast<int>(MemoryCategory::kWorkspace)] = array;  // the module
  return bytes;
}

absl::StatusOr<Learner::Kept> ModuleLearner::kept() const {
  return Kept{.elements = optimizer_.elements(),
              .optimizer = &optimizer_,
              .copies = {},
              .local_steps = rule_->local_steps()};
}

absl::Status ModuleLearner::KeepMore() {
  if (!kind_.takes_local_steps) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(const double kept, program_->Ask({.kind = Request::Kind::kSave,
                                                            .local_steps = rule_->local_steps()}));
  if (kept != 0) return absl::OkStatus();
  return absl::InternalError("the program could not keep its inner optimizer's state");
}

absl::Status ModuleLearner::Restore(std::shared_ptr<const StateReader::Contents> contents) {
  optimizer_.ForgetPending();
  rule_->RestoreLocalSteps(contents->local_steps);
  for (size_t array = 0; array < elements_.size(); ++array) {
    for (int i = 0; i < parameters_.tensors(); ++i) {
      const absl::string_view bytes = contents->elements[array][i];
      std::memcpy(elements_[array].tensor(i).data(), bytes.data(), bytes.size());
    }
  }
  if (!contents->pending.has_value()) return absl::OkStatus();
  DISTRO_RETURN_IF_ERROR(rule_->RestorePending(*contents->pending));
  optimizer_.SetPending({.round = contents->pending->round, .k = contents->pending->k});
  return absl::OkStatus();
}

}  // namespace distro::worker
