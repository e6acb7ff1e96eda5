#include "common/run/record/log_reference.h"

#include <map>
#include <string>

#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/run/record/committed_round.h"

namespace distro {

uint64_t CombineTensorHashes(absl::Span<const uint64_t> tensor_hashes) {
  std::string sums;
  for (const uint64_t hash : tensor_hashes) AppendLittleEndian(&sums, hash);
  return Xxh3(sums);
}

std::optional<LogReference> ReferenceOf(const v1::RoundHeader& header) {
  std::map<uint64_t, size_t> counts;
  size_t hashes = 0;
  for (int i = 0; i < header.members_size(); ++i) {
    if (!header.members(i).has_state_hash() || !IsIncluded(header, i)) continue;
    ++counts[header.members(i).state_hash()];
    ++hashes;
  }
  const bool enough = hashes >= kMinMajority;
  for (const auto& [hash, count] : counts) {
    if (enough ? 2 * count > hashes : count == hashes) return LogReference{hash, enough};
  }
  return std::nullopt;
}

}  // namespace distro
