// Assigns whole matrices to ranks that hold rows of all of them (docs/fsdp.md, "Muon"). Round-robin
// by cost, the most expensive first, so that ranks in a wave have about the same work. Pure
// functions, without Torch.
#pragma once

#include <cstdint>
#include <vector>

#include "common/model/layout/layout.h"
#include "worker/plan/shard_plan.h"

namespace distro::worker {

// Matrices that are processed at the same time: rank r has matrices[r], an index into the manifest;
// further ranks have none.
struct MatrixWave {
  std::vector<int> matrices;
  // Consecutive waves of one batch have the same shapes, rank by rank: a rank takes all its
  // matrices of a batch at once.
  int batch = 0;
};

// Elements of a rank's matrices in a batch on a GPU, at most, unless one matrix has more. Products
// of fewer elements leave most of a GPU idle, and a launch costs as much as they do.
inline constexpr int64_t kGpuBatchElements = int64_t{1} << 24;

// Waves that contain every tensor of `needs_whole` [tensors] once, for at least 1 rank, in batches
// of at most `batch_elements`; 0: of one wave.
std::vector<MatrixWave> MatrixWaves(const Layout& layout, const std::vector<bool>& needs_whole,
                                    int ranks, int64_t batch_elements = 0);

// [R * R]: the number of elements that rank s sends to rank d, which handles their matrix
// (Communicator::StartAllToAll).
std::vector<int64_t> WaveCounts(const ShardPlan& shards, const MatrixWave& wave);

// Maximum bytes that Newton-Schulz allocates for a matrix (kernels/cpu/newton_schulz.cc): three
// copies of the matrix and two squares of its shorter side, padded for the widest kernels.
int64_t NewtonSchulzBytes(const MatrixShape& matrix);

// Bytes that rank `rank` needs for the waves while it has no activations: its part of a batch of
// waves, the matrices that it handles, and Newton-Schulz's scratch. `shards`: of what the ranks
// hold; nullptr: every rank holds everything.
int64_t WaveScratchBytes(const Layout& layout, const std::vector<MatrixWave>& waves,
                         const ShardPlan* shards, int rank);

}  // namespace distro::worker
