// Provides the parameters of units for computation: gathers them from all ranks, or copies them to
// param_dtype or to the device, just before use, and frees them afterwards. Parameters that already
// have the right form and place are used without a copy.
//
// A freed unit keeps its tensors: their storage is resized to 0 and filled again later, outside
// autograd, so that references saved in a graph are valid again when backward needs them. One
// object per rank; not thread-safe.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "worker/fsdp/communicator.h"
#include "worker/model/model.h"
#include "worker/plan/fsdp_options.h"
#include "worker/plan/memory_counter.h"
#include "worker/plan/shard_plan.h"

namespace distro::worker {

class GatheredUnits {
 public:
  // Borrows all of them. Requires plans of the model's units for the communicator's ranks and for
  // 1.
  GatheredUnits(const FsdpOptions& options, at::Device device, const Model& model,
                const ShardPlan& shards, const ShardPlan& whole, Communicator* communicator,
                MemoryCounter* memory);
  ~GatheredUnits();

  // Starts a pass: units will be acquired in the order of `uses`, each released before the next is
  // acquired (UnitUses). Frees memory left by an earlier pass. `parameters` as UnitDriver's;
  // borrowed for the pass.
  void Begin(std::vector<int> uses, const at::Tensor& parameters);

  // Returns the tensors of the next use's unit, of param_dtype, on the device. Starts to gather the
  // following prefetch_units uses.
  absl::StatusOr<std::vector<at::Tensor>> Acquire(int unit);
  // Ends that use: frees units that the next prefetch_units uses do not need.
  void Release(int unit);

 private:
  // The flat of one unit (shard_plan.h).
  struct Flat {
    // [elements] of param_dtype; its storage is empty while the flat is not gathered.
    at::Tensor memory;
    bool here = false;                 // gathered, or being gathered
    std::optional<Transfer> transfer;  // while being gathered
  };

  bool Needed(int flat, size_t first_use, size_t uses) const;
  absl::Status Start(int flat);
  absl::Status Finish(int flat);
  // Enqueues place <- own. From the host, f32 travels and is converted on the device.
  void CopyOwn(const at::Tensor& own, at::Tensor place);
  void Fill(Flat* flat, int64_t elements);
  void Free(int flat);
  at::Tensor Own(int flat) const;
  at::Tensor FlatOf(int flat) const;
  bool Gathers() const;

  const FsdpOptions options_;
  const at::Device device_;
  const Model& model_;
  const ShardPlan& shards_;
  const ShardPlan& whole_;
  Communicator* const communicator_;
  MemoryCounter* const memory_;
  const at::ScalarType type_;
  const bool sharded_;
  std::vector<std::vector<int>> flats_of_;  // by unit: the flats that hold its tensors
  std::vector<std::string> names_;          // by flat: "block 3 parameters"
  std::vector<Flat> flats_;

  at::Tensor parameters_;
  std::vector<int> uses_;
  size_t next_use_ = 0;
};

}  // namespace distro::worker
