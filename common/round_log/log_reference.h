// State hashes: what those of tensors make together, and which parameters are right before a round:
// what the round's record says of it, so that everybody who has the log has the same answer, for
// ever (docs/protocol.md, "State hashes"). Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "distro/v1/round.pb.h"

namespace distro {

// XXH3-64 of the tensors' hashes as little-endian u64 in manifest order: the state hash
// (docs/algorithm.md, "State hash").
uint64_t CombineTensorHashes(absl::Span<const uint64_t> tensor_hashes);

// Of that many state hashes a majority decides; of fewer all must be equal.
inline constexpr size_t kMinMajority = 3;

struct LogReference {
  uint64_t state_hash = 0;
  // More than half of at least kMinMajority said so: enough to judge those that differ. Otherwise
  // it is all that fewer said.
  bool majority = false;

  friend bool operator==(const LogReference&, const LogReference&) = default;
};

// Of the state hashes of the members that are included in some segment; nothing: they do not agree,
// or there is none. Requires a header that ParseRoundHeader took, or one of the log. Of round 0 the
// run's own initial snapshot is the reference, whatever this says.
std::optional<LogReference> ReferenceOf(const v1::RoundHeader& header);

}  // namespace distro
