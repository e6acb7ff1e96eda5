// Assigns matrices to ranks where a step needs whole matrices and ranks hold rows of all of them
// (docs/fsdp.md, "Muon"). Round-robin by cost: the dearest matrices first, one a rank, so that
// ranks that work beside each other have about the same to do. Pure functions, without Torch.
#pragma once

#include <cstdint>
#include <vector>

#include "common/layout/layout.h"
#include "worker/plan/shard_plan.h"

namespace distro::worker {

// Matrices that are worked on at the same time: rank r has matrices[r], an index into the manifest;
// ranks beyond them have none.
struct MatrixWave {
  std::vector<int> matrices;
};

// Every tensor that `needs_whole` [tensors] names once, for 1 or more ranks.
std::vector<MatrixWave> MatrixWaves(const Layout& layout, const std::vector<bool>& needs_whole,
                                    int ranks);

// [R * R]: how many elements of the wave's matrices rank s has that go to rank d, which works on
// the matrix that they are of (Communicator::StartAllToAll).
std::vector<int64_t> WaveCounts(const ShardPlan& shards, const MatrixWave& wave);

// Bytes that Newton-Schulz allocates while it works on a matrix (kernels/cpu/newton_schulz.cc), at
// most: three of the matrix and two squares of its shorter side, padded as the widest kernels are.
int64_t NewtonSchulzBytes(const MatrixShape& matrix);

// Bytes that rank `rank` needs for the waves while it has no activations: its part of a wave, the
// matrix that it works on, and the scratch of that. `shards`: as what the ranks hold is cut;
// nullptr: every rank holds everything.
int64_t WaveScratchBytes(const Layout& layout, const std::vector<MatrixWave>& waves,
                         const ShardPlan* shards, int rank);

}  // namespace distro::worker
