#include "worker/python/module_learner.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"
#include "common/model/checkpoint/snapshot.h"
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
    : Learner(layout, std::move(rule), threads),
      module_(module),
      program_(program),
      backends_(BackendPerThread(threads)),
      updater_(layout, Borrow(backends_)),
      parameters_(*layout),
      shards_(layout, this->rule(), threads, &parameters_) {
  const std::vector<ShardRule*> shards = shards_.shards();
  SetShards(shards, shards.size());
}

absl::Status ModuleLearner::RunOnShards(absl::string_view /*operation*/, ShardWork work) {
  return shards_.ForEach(work);
}

absl::Status ModuleLearner::Load(const std::string& snapshot_path, RoundId next_round,
                                 uint64_t log_hash) {
  DISTRO_RETURN_IF_ERROR(ReadSnapshot(snapshot_path, layout(), &parameters_));
  Begin(next_round, log_hash, updater_.Hash(parameters_));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<uint64_t>> ModuleLearner::Update(
    const v1::StepParameters& step, std::shared_ptr<const DecodedRound> decoded) {
  return updater_.Update(step, *decoded, &parameters_);
}

absl::StatusOr<Learner::HostTensors> ModuleLearner::parameters() const {
  return HostTensors{.pieces = PiecesOf(parameters_), .copies = {}};
}

absl::Status ModuleLearner::MakeLookahead(float eta) {
  DISTRO_ASSIGN_OR_RETURN(const RunSpans module, module_->Elements());
  shards_.SetCopy(module);
  DISTRO_RETURN_IF_ERROR(shards_.ForEach([eta](ShardRule& shard, int) {
    return shard.rule().Lookahead(eta, shard.arrays().parameters, shard.arrays().copy);
  }));
  return module_->ShowElements();
}

absl::Status ModuleLearner::BeginLocalSteps() {
  DISTRO_ASSIGN_OR_RETURN(const RunSpans module, module_->Elements());
  shards_.SetCopy(module);
  DISTRO_RETURN_IF_ERROR(shards_.ForEach([](ShardRule& shard, int) {
    const ShardArrays& arrays = shard.arrays();
    for (size_t i = 0; i < arrays.copy.size(); ++i)
      std::ranges::copy(arrays.parameters[i], arrays.copy[i].begin());
    return absl::OkStatus();
  }));
  return module_->ShowElements();
}

void ModuleLearner::CountSteps(int steps) {
  for (ShardRule* shard : shards_.shards()) shard->rule().CountLocalSteps(steps);
}

absl::Status ModuleLearner::TakeStep(const v1::StepParameters& step, int index, double norm) {
  DISTRO_ASSIGN_OR_RETURN(const RunSpans gradients, module_->Gradients());
  shards_.SetGradient(gradients);
  return Learner::TakeStep(step, index, norm);
}

absl::StatusOr<std::vector<SharedBytes>> ModuleLearner::Compress(RoundId round,
                                                                 const v1::StepParameters& step) {
  ForgetPending();
  if (rule().takes_local_steps) {
    DISTRO_ASSIGN_OR_RETURN(const RunSpans module, module_->ReadElements());
    shards_.SetCopy(module);
  }
  DISTRO_ASSIGN_OR_RETURN(std::vector<SharedBytes> payloads, Learner::Compress(round, step));
  if (payloads.empty()) DISTRO_RETURN_IF_ERROR(ResetInnerOptimizer());
  return payloads;
}

absl::Status ModuleLearner::ForgetState() {
  DISTRO_RETURN_IF_ERROR(Learner::ForgetState());
  return ResetInnerOptimizer();
}

absl::Status ModuleLearner::ResetInnerOptimizer() {
  return program_->Ask({.kind = Request::Kind::kReset}).status();
}

MemoryByCategory ModuleLearner::memory() const {
  const auto array = static_cast<int64_t>(layout().elements() * sizeof(float));
  MemoryByCategory bytes = {};
  bytes[static_cast<int>(MemoryCategory::kParameters)] = array;
  bytes[static_cast<int>(MemoryCategory::kMomentum)] = rule().element_arrays * array;
  bytes[static_cast<int>(MemoryCategory::kGradients)] = module_->GradientBytes();
  for (size_t i = 0; i < layout().tensors().size(); ++i) {
    const ModuleTensors::Memory memory = module_->MemoryOf(i);
    bytes[static_cast<int>(MemoryCategory::kWorkspace)] +=
        memory.module + memory.master + memory.host;
  }
  return bytes;
}

absl::Status ModuleLearner::KeepMore() {
  if (!rule().takes_local_steps) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(const Answer kept, program_->Ask({.kind = Request::Kind::kSave,
                                                            .local_steps = local_steps()}));
  if (kept.value != 0) return absl::OkStatus();
  return absl::InternalError("the program could not keep its inner optimizer's state");
}

}  // namespace distro::worker
