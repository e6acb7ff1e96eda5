#include "common/update/combine.h"

#include <bit>
#include <cassert>

namespace distro {

void VoteAccumulator::EmitBlock(Votes* votes) {
  std::array<uint16_t, kBlockElements> positions;
  std::array<int16_t, kBlockElements> values;
  size_t count = 0;
  for (uint32_t word = 0; word < touched_.size(); ++word) {
    for (uint64_t bits = touched_[word]; bits != 0; bits &= bits - 1) {
      const uint32_t position = word * 64 + static_cast<uint32_t>(std::countr_zero(bits));
      positions[count] = static_cast<uint16_t>(position);
      values[count] = sums_[position];
      count += sums_[position] != 0;
      sums_[position] = 0;
    }
    touched_[word] = 0;
  }
  votes->positions.insert(votes->positions.end(), positions.begin(), positions.begin() + count);
  votes->values.insert(votes->values.end(), values.begin(), values.begin() + count);
  votes->offsets.push_back(static_cast<uint32_t>(votes->positions.size()));
}

Votes Combine(absl::Span<const WeightedUpdate> updates) {
  Votes votes;
  VoteAccumulator accumulator;
  for (int64_t block = 0; block < updates.front().update->blocks(); ++block) {
    for (const WeightedUpdate& one : updates) {
      assert(one.update->blocks() == updates.front().update->blocks());
      const int k = one.update->k;
      const auto positions = absl::MakeConstSpan(one.update->positions).subspan(block * k, k);
      accumulator.Add(positions, absl::MakeConstSpan(one.update->signs).subspan(block * k, k),
                      one.weight);
    }
    accumulator.EmitBlock(&votes);
  }
  return votes;
}

}  // namespace distro
