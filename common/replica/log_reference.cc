#include "common/replica/log_reference.h"

#include <algorithm>
#include <map>
#include <string>

namespace distro {
namespace {

// Bit i: member i is included in some segment.
std::string IncludedAnywhere(const v1::RoundHeader& header) {
  std::string included((header.members_size() + 7) / 8, '\0');
  for (const v1::CommittedSegment& segment : header.segments()) {
    const size_t bytes = std::min(included.size(), segment.included().size());
    for (size_t i = 0; i < bytes; ++i)
      included[i] = static_cast<char>(included[i] | segment.included()[i]);
  }
  return included;
}

}  // namespace

std::optional<LogReference> ReferenceOf(const v1::RoundHeader& header) {
  const std::string included = IncludedAnywhere(header);
  std::map<uint64_t, size_t> counts;
  size_t hashes = 0;
  for (int i = 0; i < header.members_size(); ++i) {
    const bool in = (static_cast<uint8_t>(included[i / 8]) >> (i % 8) & 1) != 0;
    if (!in || !header.members(i).has_state_hash()) continue;
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
