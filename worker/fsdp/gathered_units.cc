#include "worker/fsdp/gathered_units.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/model/unit.h"

namespace distro::worker {
namespace {

bool Contains(const std::vector<int>& values, int value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

}  // namespace

GatheredUnits::GatheredUnits(const FsdpOptions& options, at::Device device, const Model& model,
                             const ShardPlan& shards, const ShardPlan& whole,
                             Communicator* communicator, MemoryCounter* memory)
    : options_(options),
      device_(device),
      model_(model),
      shards_(shards),
      whole_(whole),
      communicator_(communicator),
      memory_(memory),
      type_(options.param_dtype == FloatType::kBf16 ? at::kBFloat16 : at::kFloat),
      sharded_(ShardsParameters(options.sharding) && communicator->ranks() > 1),
      flats_(model.units().size()) {
  for (const auto& unit : model.units()) {
    std::vector<int> flats;
    for (const int tensor : unit->tensors()) {
      const int flat = shards.place(tensor).unit;
      if (!Contains(flats, flat)) flats.push_back(flat);
    }
    flats_of_.push_back(std::move(flats));
    names_.push_back(absl::StrCat(unit->name(), " parameters"));
  }
}

GatheredUnits::~GatheredUnits() {
  for (size_t flat = 0; flat < flats_.size(); ++flat) Free(static_cast<int>(flat));
}

bool GatheredUnits::Gathers() const {
  return sharded_ || type_ != at::kFloat || options_.cpu_offload;
}

void GatheredUnits::Begin(std::vector<int> uses, const at::Tensor& parameters) {
  for (size_t flat = 0; flat < flats_.size(); ++flat) Free(static_cast<int>(flat));
  uses_ = std::move(uses);
  next_use_ = 0;
  parameters_ = parameters;
}

bool GatheredUnits::Needed(int flat, size_t first_use, size_t uses) const {
  for (size_t i = first_use; i < std::min(first_use + uses, uses_.size()); ++i) {
    if (Contains(flats_of_[uses_[i]], flat)) return true;
  }
  return false;
}

absl::StatusOr<std::vector<at::Tensor>> GatheredUnits::Acquire(int unit) {
  const size_t window = static_cast<size_t>(options_.prefetch_units) + 1;
  const size_t end = std::min(next_use_ + window, uses_.size());
  if (Gathers()) {
    for (size_t use = next_use_; use < end; ++use) {
      for (const int flat : flats_of_[uses_[use]]) DISTRO_RETURN_IF_ERROR(Start(flat));
    }
    for (const int flat : flats_of_[unit]) DISTRO_RETURN_IF_ERROR(Finish(flat));
  }
  ++next_use_;
  std::vector<at::Tensor> tensors;
  for (const int tensor : model_.units()[unit]->tensors()) {
    const ShardPlan::Place place = shards_.place(tensor);
    const FlatTensor& in_flat = shards_.units()[place.unit].tensors[place.index];
    tensors.push_back(FlatOf(place.unit)
                          .narrow(0, in_flat.offset, in_flat.elements)
                          .view(model_.shapes()[tensor]));
  }
  return tensors;
}

void GatheredUnits::Release(int unit) {
  for (const int flat : flats_of_[unit]) {
    if (!Needed(flat, next_use_, static_cast<size_t>(options_.prefetch_units))) Free(flat);
  }
}

absl::Status GatheredUnits::Start(int flat) {
  Flat& target = flats_[flat];
  const UnitFlat& plan = shards_.units()[flat];
  if (target.here || plan.elements == 0) return absl::OkStatus();
  Fill(&target, plan.elements);
  const at::Tensor all = target.memory.variable_data();  // writes that autograd does not see
  at::Tensor shard = Own(flat);
  if (!sharded_) {
    CopyOwn(shard, all);
    return absl::OkStatus();
  }
  const int rank = communicator_->rank();
  if (type_ != at::kFloat || options_.cpu_offload) {
    const at::Tensor place = all.narrow(0, plan.cuts[rank], plan.cuts[rank + 1] - plan.cuts[rank]);
    CopyOwn(shard, place);
    shard = place;
  }
  DISTRO_ASSIGN_OR_RETURN(target.transfer,
                          communicator_->StartAllGather(names_[flat], plan.cuts, shard, all));
  return absl::OkStatus();
}

// One copy for both would make Torch convert on the CPU, into memory that is not pinned.
void GatheredUnits::CopyOwn(const at::Tensor& own, at::Tensor place) {
  if (type_ == at::kFloat || !options_.cpu_offload) {
    place.copy_(own, /*non_blocking=*/true);
    return;
  }
  at::Tensor arrived = at::empty(own.sizes(), at::TensorOptions(at::kFloat).device(device_));
  arrived.copy_(own, /*non_blocking=*/true);
  place.copy_(arrived);
}

absl::Status GatheredUnits::Finish(int flat) {
  const std::optional<Transfer> transfer = std::exchange(flats_[flat].transfer, std::nullopt);
  return transfer.has_value() ? communicator_->Wait(*transfer) : absl::OkStatus();
}

void GatheredUnits::Fill(Flat* flat, int64_t elements) {
  if (!flat->memory.defined()) {
    flat->memory = at::empty({elements}, at::TensorOptions(type_).device(device_));
  } else {
    c10::StorageImpl* storage = flat->memory.storage().unsafeGetStorageImpl();
    const size_t bytes = static_cast<size_t>(elements) * c10::elementSize(type_);
    storage->set_data_ptr_noswap(storage->allocator()->allocate(bytes));
    storage->set_nbytes(bytes);
  }
  flat->here = true;
  memory_->Add(MemoryCategory::kGathered, flat->memory.numel() * c10::elementSize(type_));
}

void GatheredUnits::Free(int flat) {
  Flat& target = flats_[flat];
  if (!target.here) return;
  Finish(flat).IgnoreError();  // only a pass that has failed frees what is still being gathered
  c10::StorageImpl* storage = target.memory.storage().unsafeGetStorageImpl();
  storage->set_data_ptr_noswap(at::DataPtr(nullptr, device_));
  storage->set_nbytes(0);
  target.here = false;
  memory_->Remove(MemoryCategory::kGathered, target.memory.numel() * c10::elementSize(type_));
}

// This rank's part of a flat, in f32.
at::Tensor GatheredUnits::Own(int flat) const {
  const RankShard& own = sharded_ ? shards_.shard(communicator_->rank()) : whole_.shard(0);
  const int64_t begin = own.unit_offsets[flat];
  return parameters_.narrow(0, begin, own.unit_offsets[flat + 1] - begin);
}

at::Tensor GatheredUnits::FlatOf(int flat) const {
  return Gathers() ? flats_[flat].memory : Own(flat);
}

}  // namespace distro::worker
