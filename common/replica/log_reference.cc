#include "common/replica/log_reference.h"

#include <map>

#include "common/replica/committed_round.h"

namespace distro {
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
