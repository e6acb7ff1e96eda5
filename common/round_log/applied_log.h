// Tracks how far a run's log has been applied to some parameters, and the hash of the result. It is
// the base of every replica, wherever its parameters are (kernels/replica/replica.h: whole, in the
// host's memory; worker/node/node.h: on ranks). It accepts the next round only, decodes it, and
// advances when the whole round was applied.
//
//   class Replica : public AppliedLog {
//     absl::Status Apply(const CommittedRound& round) {
//       return ApplyNext(round, threads, [&](const auto& step, auto decoded) {
//         ...;
//         return tensor_hashes;
//       });
//     }
//   };
//
// Not thread-safe: one caller applies.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/layout/layout.h"
#include "common/round_log/committed_round.h"
#include "common/round_log/decoded_round.h"
#include "distro/v1/round.pb.h"

namespace distro {

class AppliedLog {
 public:
  const Layout& layout() const { return *layout_; }
  // The first round that is not applied, and the chain hash of the record before it (of the start
  // record for round 0; 0 when that one is not known yet: a worker that joins before the run
  // starts).
  RoundId next_round() const { return next_round_; }
  uint64_t log_hash() const { return log_hash_; }
  // The state hash of each tensor, in manifest order.
  absl::Span<const uint64_t> tensor_hashes() const { return tensor_hashes_; }
  // Of all parameters (docs/algorithm.md, "State hash").
  uint64_t StateHash() const;

 protected:
  // `layout` is borrowed.
  explicit AppliedLog(const Layout* layout)
      : layout_(layout), tensor_hashes_(layout->tensors().size()) {}

  // The parameters are those before `next_round`, and have these hashes.
  void Begin(RoundId next_round, uint64_t log_hash, std::vector<uint64_t> tensor_hashes);

  // Updates the parameters by a decoded round, all or nothing; returns the tensors' hashes.
  using Update = absl::FunctionRef<absl::StatusOr<std::vector<uint64_t>>(
      const v1::StepParameters& step, DecodedRound decoded)>;
  // Messages name the round. FailedPrecondition: the round is not next_round(), or its predecessor
  // hash differs from log_hash() (reason `diverged`). InvalidArgument, DataLoss: as DecodeRound.
  // Otherwise the status of `update`. Then nothing changed here.
  // `threads`, at least one, share the decoding.
  absl::Status ApplyNext(const CommittedRound& round, int threads, Update update);

 private:
  const Layout* const layout_;
  RoundId next_round_;
  uint64_t log_hash_ = 0;
  std::vector<uint64_t> tensor_hashes_;
};

}  // namespace distro
