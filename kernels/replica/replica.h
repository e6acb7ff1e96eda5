// The log applied to parameters: what a worker, an archiver and `distroctl` hold. Parameters at round r are a pure
// function of (snapshot, rounds up to r), bit for bit on any machine.
//
// Not thread-safe: one caller applies, and within a call as many threads as it was given backends; how many there are
// changes no bit. Readers of parameters() synchronise with it themselves.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/layout/layout.h"
#include "common/layout/tensor_buffer.h"
#include "common/round_log/committed_round.h"
#include "common/update/votes.h"
#include "distro/v1/round.pb.h"
#include "kernels/backend.h"
#include "kernels/replica/round_update.h"

namespace distro {

class Replica {
 public:
  // `layout` and `backend` are borrowed and outlive the replica. `parameters` are those before `next_round`; `log_hash`
  // is the chain hash of the record before it (of the start record for round 0; 0 when that one is not known yet: a worker
  // that joins before the run starts).
  Replica(const Layout* layout, Backend* backend, TensorBuffer parameters, RoundId next_round,
          uint64_t log_hash);
  // The same with a thread for each of `backends`, at least one.
  Replica(const Layout* layout, std::vector<Backend*> backends, TensorBuffer parameters,
          RoundId next_round, uint64_t log_hash);

  // Decodes every segment, then updates the parameters: all of the round or nothing.
  // FailedPrecondition: not next_round(), or its predecessor hash differs from log_hash() (reason `diverged`).
  // InvalidArgument: a payload does not decode. In both cases nothing changed.
  absl::Status Apply(const CommittedRound& round);

  RoundId next_round() const { return next_round_; }
  uint64_t log_hash() const { return log_hash_; }
  const Layout& layout() const { return *layout_; }
  const TensorBuffer& parameters() const { return parameters_; }

  // The state hash of each tensor, in manifest order: made with every Apply, while the parameters are in cache.
  absl::Span<const uint64_t> tensor_hashes() const { return tensor_hashes_; }
  // XXH3-64 of the tensors' hashes as little-endian u64 in manifest order (docs/algorithm.md, "State hash").
  uint64_t StateHash() const;

 private:
  // Cannot fail on votes that were decoded.
  absl::Status Update(const v1::StepParameters& step, const std::vector<Votes>& votes);
  uint64_t HashTile(size_t i, Backend* backend) const;
  void AddTileHashes(const std::vector<uint64_t>& hashes);
  // Calls work(item, backend) for each item; the first error in the order of items.
  template <typename Work>
  absl::Status ForEach(size_t items, const Work& work);

  const Layout* const layout_;
  const std::vector<Backend*> backends_;
  const TileUpdater updater_;  // its part i is tensor i
  TensorBuffer parameters_;
  std::vector<uint64_t> tensor_hashes_;
  RoundId next_round_;
  uint64_t log_hash_;
};

// The state hash of any parameters.
uint64_t StateHash(const Layout& layout, const TensorBuffer& parameters, Backend* backend);

}  // namespace distro
