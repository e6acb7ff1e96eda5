#include "common/update/top.h"

#include <algorithm>
#include <cstdlib>

#include "common/base/random.h"

namespace distro {
namespace {

struct Candidate {
  int magnitude;
  uint64_t tie;
  uint32_t entry;  // index into the votes

  bool operator<(const Candidate& other) const {
    if (magnitude != other.magnitude) return magnitude > other.magnitude;
    return tie < other.tie;
  }
};

// The entries begin .. end-1 of one block that stay, ascending. `base` is the tie hash's argument
// for position 0.
std::vector<uint32_t> KeptEntries(const Votes& votes, uint32_t begin, uint32_t end, int keep,
                                  uint64_t run_seed, uint64_t base) {
  std::vector<Candidate> candidates;
  for (uint32_t i = begin; i < end; ++i) {
    candidates.push_back(
        {std::abs(int{votes.values[i]}), SplitMix64(run_seed, base + votes.positions[i]), i});
  }
  if (keep < static_cast<int>(candidates.size())) {
    std::nth_element(candidates.begin(), candidates.begin() + keep, candidates.end());
    candidates.resize(keep);
  }
  std::vector<uint32_t> kept;
  for (const Candidate& candidate : candidates) kept.push_back(candidate.entry);
  std::sort(kept.begin(), kept.end());
  return kept;
}

}  // namespace

Votes KeepTop(const Votes& votes, int keep, uint64_t run_seed, RoundId round, int64_t first_block) {
  Votes result;
  for (int64_t block = 0; block < votes.blocks(); ++block) {
    const uint64_t base =
        (round.value() << 38) + (static_cast<uint64_t>(first_block + block) << 12);
    for (uint32_t i :
         KeptEntries(votes, votes.offsets[block], votes.offsets[block + 1], keep, run_seed, base)) {
      result.positions.push_back(votes.positions[i]);
      result.values.push_back(votes.values[i]);
    }
    result.offsets.push_back(static_cast<uint32_t>(result.positions.size()));
  }
  return result;
}

}  // namespace distro
