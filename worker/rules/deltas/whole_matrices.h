// Orthogonalizes whole matrices whose rows are sharded over ranks, or which every rank has
// (docs/fsdp.md, "Muon"): sends their directions to one rank, which runs Newton-Schulz, and
// distributes the result. The bits are those of one rank, because Newton-Schulz gets the same
// array.
//
// Not thread-safe: used on the rank's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/plan/matrix_waves.h"
#include "worker/rules/update_rule.h"

namespace distro::worker {

class WholeMatrices {
 public:
  // `needs_whole` [tensors]: the matrices. `iterations`: of Newton-Schulz.
  WholeMatrices(const RuleShard& shard, const std::vector<bool>& needs_whole, int iterations);

  // For every run of the matrices (an index into the shard's runs), `make` writes the direction,
  // and `use` receives its orthogonalized values. A collective operation if there are several
  // ranks. Returns the first error of `make`, `use` or the steps between.
  absl::Status Orthogonalize(
      absl::FunctionRef<absl::Status(size_t run, absl::Span<float> direction)> make,
      absl::FunctionRef<absl::Status(size_t run, absl::Span<const float> direction)> use) const;

 private:
  struct Part {
    size_t run = 0;
    int64_t offset = 0;  // in the rank's directions of the wave
    int64_t elements = 0;
  };
  // `make`'s directions of each wave of a batch, or the whole matrices that this rank works on.
  using OfWaves = std::vector<SharedFloats>;
  struct Wave {
    std::string name;                 // "matrices 4 to 7", for messages
    std::vector<Part> parts;          // of this rank, by the rank that works on them
    int64_t elements = 0;             // of all parts
    int own = -1;                     // the matrix that this rank works on; -1: none
    std::vector<int64_t> to_owners;   // RankExchange::AllToAll's counts, where ranks have rows
    std::vector<int64_t> to_holders;  // the way back
    std::vector<int64_t> cuts;        // RankExchange::AllGather's, where every rank has everything
  };

  using Batch = std::vector<Wave>;

  Wave WaveOf(const MatrixWave& wave, absl::Span<const ShardRun> runs) const;
  absl::Status OrthogonalizeBatch(const Batch& batch, const OfWaves& directions) const;
  // The matrix that this rank works on, of all ranks' directions.
  absl::StatusOr<SharedFloats> Collect(const Wave& wave, const SharedFloats& directions) const;
  absl::Status NewtonSchulzOf(const Batch& batch, const OfWaves& matrices) const;
  // Back into all ranks' directions.
  absl::Status Distribute(const Wave& wave, const SharedFloats& matrix,
                          const SharedFloats& directions) const;

  const Layout* const layout_;
  const ShardPlan* const shards_;
  Orthogonalizer* const orthogonalizer_;
  RankExchange* const exchange_;  // nullptr: alone
  const int ranks_;
  const int rank_;
  const int iterations_;
  std::vector<Batch> batches_;
};

}  // namespace distro::worker
