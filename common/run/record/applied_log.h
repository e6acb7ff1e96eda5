// Tracks how far a run's log has been applied to parameters, and the hash of the result. Base class
// of all replicas: kernels/replica/replica.h holds whole parameters in host memory,
// worker/node/node.h holds them on ranks. It accepts only the next round, decodes it, and advances
// when the whole round was applied.
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
#include "common/method/methods.h"
#include "common/model/layout/layout.h"
#include "common/run/record/committed_round.h"
#include "distro/v1/round.pb.h"

namespace distro {

class AppliedLog {
 public:
  const Layout& layout() const { return *layout_; }
  // The first round that is not applied, and the chain hash of the record before it. For round 0
  // that is the start record, whose hash is 0 while it is not known: a worker may join before the
  // run starts.
  RoundId next_round() const { return next_round_; }
  uint64_t log_hash() const { return log_hash_; }
  // The state hash of each tensor, in manifest order.
  absl::Span<const uint64_t> tensor_hashes() const { return tensor_hashes_; }
  // The state hash of all parameters (docs/algorithm.md, "State hash").
  uint64_t StateHash() const;

 protected:
  // `layout` is borrowed.
  explicit AppliedLog(const Layout* layout)
      : layout_(layout), tensor_hashes_(layout->tensors().size()) {}

  // The parameters are those before `next_round`, and have these hashes.
  void Begin(RoundId next_round, uint64_t log_hash, std::vector<uint64_t> tensor_hashes);

  // Applies a decoded round to the parameters, all or nothing; returns the tensors' hashes.
  using Update = absl::FunctionRef<absl::StatusOr<std::vector<uint64_t>>(
      const v1::StepParameters& step, DecodedRound decoded)>;
  // Decodes the round on `threads` threads, at least one, and calls `update`. After an error
  // nothing has changed here; messages name the round. FailedPrecondition: the round is not
  // next_round(), or its predecessor hash differs from log_hash() (reason `diverged`).
  // InvalidArgument, DataLoss: as DecodeRound. Other codes: from `update`.
  absl::Status ApplyNext(const CommittedRound& round, int threads, Update update);

 private:
  const Layout* const layout_;
  RoundId next_round_;
  uint64_t log_hash_ = 0;
  std::vector<uint64_t> tensor_hashes_;
};

}  // namespace distro
