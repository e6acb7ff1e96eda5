#include "kernels/cpu/exact.h"

#include <cstdlib>

#include "common/method/signs/votes.h"
#include "kernels/block_site.h"

namespace distro {
namespace {

// The largest s with total * 2^s <= 32767; 0 when there are no votes.
int Shift(int64_t total) {
  int shift = 0;
  while (total > 0 && (total << (shift + 1)) <= kMaxVotesPerBlock) ++shift;
  return shift;
}

}  // namespace

std::optional<BlockVotes> VotesOfBlock(const VotesView& votes, int64_t block) {
  const uint32_t begin = votes.offsets[block] - votes.offsets[0];
  const uint32_t end = votes.offsets[block + 1] - votes.offsets[0];
  int64_t total = 0;
  int previous = -1;
  bool ascending = true;
  for (uint32_t i = begin; i < end; ++i) {
    total += std::abs(int{votes.values[i]});
    ascending &= votes.positions[i] > previous;
    previous = votes.positions[i];
  }
  if (!ascending || previous >= kBlockElements || total > kMaxVotesPerBlock) return std::nullopt;
  return BlockVotes{.positions = votes.positions.data() + begin,
                    .values = votes.values.data() + begin,
                    .count = static_cast<int>(end - begin),
                    .shift = Shift(total)};
}

void CheckVotes(const VotesView& votes, int64_t blocks) {
  CheckShape(votes.offsets.size() == static_cast<size_t>(blocks) + 1,
             "vote offsets are not [count + 1]");
  for (int64_t b = 0; b < blocks; ++b) {
    CheckShape(votes.offsets[b] <= votes.offsets[b + 1], "vote offsets are not ascending");
  }
  const uint32_t entries = votes.offsets[blocks] - votes.offsets[0];
  CheckShape(votes.positions.size() == entries && votes.values.size() == entries,
             "vote positions or values do not match the offsets");
}

DefaultFloatEnvironment::DefaultFloatEnvironment() {
  std::fegetenv(&callers_);
  std::fesetenv(FE_DFL_ENV);
}

DefaultFloatEnvironment::~DefaultFloatEnvironment() { std::fesetenv(&callers_); }

}  // namespace distro
