#include "server/round/state_hashes.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"

namespace distro::server {
namespace {

uint64_t MostFrequent(const v1::RoundHeader& header) {
  std::map<uint64_t, int> counts;
  for (const v1::Member& member : header.members()) {
    if (member.has_state_hash()) ++counts[member.state_hash()];
  }
  uint64_t best = 0;
  int most = 0;
  for (const v1::Member& member : header.members()) {
    if (!member.has_state_hash() || counts[member.state_hash()] <= most) continue;
    best = member.state_hash();
    most = counts[best];
  }
  return best;
}

}  // namespace

StateHashReport CompareStateHashes(const v1::RoundHeader& header, std::optional<uint64_t> truth) {
  StateHashReport report{.reference = truth ? *truth : MostFrequent(header), .disagree = {}};
  for (const v1::Member& member : header.members()) {
    if (!member.has_state_hash() || member.state_hash() == report.reference) continue;
    report.disagree.push_back(absl::StrCat(member.name(), "=", ToHex(member.state_hash())));
  }
  return report;
}

}  // namespace distro::server
