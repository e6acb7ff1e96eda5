#include "worker/fsdp/gradient_reducer.h"

#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

at::ScalarType TorchType(FloatType type) {
  return type == FloatType::kBf16 ? at::kBFloat16 : at::kFloat;
}

}  // namespace

GradientReducer::GradientReducer(const FsdpOptions& options, const Model& model,
                                 const ShardPlan& shards, const ShardPlan& whole,
                                 Communicator* communicator, MemoryCounter* memory)
    : options_(options),
      model_(model),
      shards_(shards),
      whole_(whole),
      communicator_(communicator),
      memory_(memory),
      sharded_(ShardsGradients(options.sharding) && communicator->ranks() > 1) {}

GradientReducer::~GradientReducer() {
  End().IgnoreError();  // whoever ends here with a reduction under way has failed already
}

// Whether gradients are accumulated locally: there is nothing to reduce, or not yet.
bool GradientReducer::AtHome() const {
  return communicator_->ranks() == 1 || !options_.reduce_every_micro_batch;
}

void GradientReducer::Begin(bool has_part, Accumulation accumulation, const at::Tensor& gradient) {
  has_part_ = has_part;
  accumulation_ = accumulation;
  gradient_ = gradient;
  if (AtHome() && !has_part && accumulation == Accumulation::kStore) gradient_.zero_();
}

absl::Status GradientReducer::Take(int unit, std::vector<TensorGradient> gradients) {
  if (shards_.units()[unit].elements == 0) return absl::OkStatus();
  if (AtHome()) {
    AddAtHome(unit, gradients);
    return absl::OkStatus();
  }
  DISTRO_RETURN_IF_ERROR(End());
  const int64_t bytes =
      has_part_ ? shards_.units()[unit].elements * BytesOf(options_.reduce_dtype) : 0;
  const at::Tensor part = has_part_ ? FlatOf(unit, std::move(gradients)) : at::Tensor();
  return Reduce(unit, part, accumulation_, bytes);
}

void GradientReducer::AddAtHome(int unit, const std::vector<TensorGradient>& gradients) {
  const at::Tensor whole = Whole(unit);
  for (const auto& [tensor, part] : gradients) {
    const FlatTensor& place = shards_.units()[unit].tensors[shards_.place(tensor).index];
    at::Tensor sum = whole.narrow(0, place.offset, place.elements).view(model_.shapes()[tensor]);
    accumulation_ == Accumulation::kStore ? sum.copy_(part) : sum.add_(part);
  }
}

at::Tensor GradientReducer::FlatOf(int unit, std::vector<TensorGradient> gradients) {
  const UnitFlat& plan = shards_.units()[unit];
  at::Tensor flat =
      at::empty({plan.elements}, gradient_.options().dtype(TorchType(options_.reduce_dtype)));
  for (auto& [tensor, part] : gradients) {
    const size_t index = shards_.place(tensor).index;
    const FlatTensor& place = plan.tensors[index];
    flat.narrow(0, place.offset, place.elements).view(model_.shapes()[tensor]).copy_(part);
    part.reset();
    const int64_t gap = place.offset + place.elements;
    const int64_t end =
        index + 1 < plan.tensors.size() ? plan.tensors[index + 1].offset : plan.elements;
    flat.narrow(0, gap, end - gap).zero_();
  }
  return flat;
}

absl::Status GradientReducer::Reduce(int unit, const at::Tensor& part, Accumulation accumulation,
                                     int64_t counted_bytes) {
  memory_->Add(MemoryCategory::kWorkspace, counted_bytes);
  absl::Cleanup forget = [&] { memory_->Remove(MemoryCategory::kWorkspace, counted_bytes); };
  DISTRO_ASSIGN_OR_RETURN(
      const Transfer transfer,
      communicator_->StartReduceScatter(
          absl::StrCat(model_.units()[unit]->name(), " gradients"), shards_.units()[unit].cuts,
          part, TorchType(options_.reduce_dtype), accumulation, OwnSum(unit)));
  std::move(forget).Cancel();
  under_way_ = {.transfer = transfer, .part = part, .counted_bytes = counted_bytes};
  return absl::OkStatus();
}

absl::Status GradientReducer::End() {
  if (!under_way_.has_value()) return absl::OkStatus();
  const absl::Status status = communicator_->Wait(under_way_->transfer);
  memory_->Remove(MemoryCategory::kWorkspace, under_way_->counted_bytes);
  under_way_.reset();
  return status;
}

absl::Status GradientReducer::FinishStep(const at::Tensor& gradient) {
  gradient_ = gradient;
  if (communicator_->ranks() == 1) return absl::OkStatus();
  for (size_t i = 0; i < shards_.units().size(); ++i) {
    const int unit = static_cast<int>(i);
    const UnitFlat& plan = shards_.units()[unit];
    if (plan.elements == 0) continue;
    if (AtHome()) {
      at::Tensor part = Whole(unit);
      const bool copies = options_.reduce_dtype == FloatType::kBf16;
      if (copies) part = part.to(at::kBFloat16);
      DISTRO_RETURN_IF_ERROR(
          Reduce(unit, part, Accumulation::kStore, copies ? plan.elements * 2 : 0));
      DISTRO_RETURN_IF_ERROR(End());
    }
    if (options_.sharding == Sharding::kNoShard) {
      DISTRO_ASSIGN_OR_RETURN(
          const Transfer transfer,
          communicator_->StartAllGather(absl::StrCat(model_.units()[unit]->name(), " gradients"),
                                        plan.cuts, OwnSum(unit), Whole(unit)));
      DISTRO_RETURN_IF_ERROR(communicator_->Wait(transfer));
    }
  }
  return absl::OkStatus();
}

// Requires gradients that are not sharded.
at::Tensor GradientReducer::Whole(int unit) const {
  const std::vector<int64_t>& offsets = whole_.shard(0).unit_offsets;
  return gradient_.narrow(0, offsets[unit], offsets[unit + 1] - offsets[unit]);
}

at::Tensor GradientReducer::OwnSum(int unit) const {
  const int rank = communicator_->rank();
  const std::vector<int64_t>& cuts = shards_.units()[unit].cuts;
  const int64_t begin = sharded_ ? shards_.shard(rank).unit_offsets[unit]
                                 : whole_.shard(0).unit_offsets[unit] + cuts[rank];
  return gradient_.narrow(0, begin, cuts[rank + 1] - cuts[rank]);
}

}  // namespace distro::worker
