// Whole parameters in the host's memory, updated by a round and hashed while they are in cache: by
// a Replica, and by a worker that trains a module of PyTorch. Thread-safe with parameters of their
// own; within a call as many threads as it was given backends, how many there are changes no bit.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "common/layout/layout.h"
#include "common/layout/tensor_buffer.h"
#include "common/round_log/decoded_round.h"
#include "distro/v1/round.pb.h"
#include "kernels/backend.h"
#include "kernels/replica/round_update.h"

namespace distro {

class HostUpdater {
 public:
  // `layout` and `backends`, of a CPU, at least one, are borrowed.
  HostUpdater(const Layout* layout, std::vector<Backend*> backends);

  int threads() const { return static_cast<int>(backends_.size()); }

  // The update of AppliedLog::ApplyNext: the tensors' hashes. Requires a buffer of the layout.
  absl::StatusOr<std::vector<uint64_t>> Update(const v1::StepParameters& step,
                                               const DecodedRound& decoded,
                                               TensorBuffer* parameters) const;
  // The hashes as they are.
  std::vector<uint64_t> Hash(const TensorBuffer& parameters) const;

 private:
  // work(tile, backend, sum) for every tile, shared by the backends; the tensors' sums.
  using TileWork = absl::FunctionRef<void(const Tile& tile, Backend* backend, uint64_t* sum)>;
  std::vector<uint64_t> ForEachTile(TileWork work) const;

  const std::vector<Backend*> backends_;
  const TileUpdater updater_;  // its part i is tensor i
};

}  // namespace distro
