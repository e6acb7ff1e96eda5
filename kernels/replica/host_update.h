// Applies a round to parameters in host memory, and hashes them while they are in cache. Used by
// Replica and by a worker that trains a PyTorch module. Thread-safe for different parameters. A
// call uses one thread per backend; their number does not change the result.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/method/methods.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"
#include "distro/v1/round.pb.h"
#include "kernels/backend.h"
#include "kernels/replica/round_update.h"

namespace distro {

class HostUpdater {
 public:
  // Borrows `layout` and `backends`: at least one, all of a CPU.
  HostUpdater(const Layout* layout, std::vector<Backend*> backends);

  int threads() const { return static_cast<int>(backends_.size()); }

  // The update function of AppliedLog::ApplyNext. Returns the tensors' hashes. Requires a buffer of
  // the layout.
  absl::StatusOr<std::vector<uint64_t>> Update(const v1::StepParameters& step,
                                               const DecodedRound& decoded,
                                               TensorBuffer* parameters) const;
  // The tensors' hashes without an update.
  std::vector<uint64_t> Hash(const TensorBuffer& parameters) const;

 private:
  // Calls work(tile, backend, sum) for every tile, in parallel over the backends. Returns the sums
  // of the tensors.
  using TileWork = absl::FunctionRef<void(const Tile& tile, Backend* backend, uint64_t* sum)>;
  std::vector<uint64_t> ForEachTile(TileWork work) const;

  const std::vector<Backend*> backends_;
  const TileUpdater updater_;  // its part i is tensor i
};

}  // namespace distro
