// State hashes: combines the hashes of tensors, and decides from a round's record which state hash
// is right, so that everyone with the log gets the same answer (docs/protocol.md, "State hashes").
// Pure.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/types/span.h"
#include "distro/v1/round.pb.h"

namespace distro {

// XXH3-64 of the tensors' hashes as little-endian u64 in manifest order: the state hash
// (docs/algorithm.md, "State hash").
uint64_t CombineTensorHashes(absl::Span<const uint64_t> tensor_hashes);

// From this many state hashes on, a majority decides; with fewer, all must be equal.
inline constexpr size_t kMinMajority = 3;

struct LogReference {
  uint64_t state_hash = 0;
  // True if more than half of at least kMinMajority members agree: enough to reject those that
  // differ. False if there are fewer members, who all agree.
  bool majority = false;

  friend bool operator==(const LogReference&, const LogReference&) = default;
};

// The reference by the state hashes of the members that are included in some segment; nullopt if
// they do not agree, or there are none. Requires a header accepted by ParseRoundHeader, or from the
// log. For round 0 the run's initial snapshot is the reference instead.
std::optional<LogReference> ReferenceOf(const v1::RoundHeader& header);

}  // namespace distro
