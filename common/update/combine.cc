#include "common/update/combine.h"

#include <bit>
#include <utility>

namespace distro {

// Positions first: most words have few, and a loop of a fixed number of steps is not mispredicted
// as one to the last bit is.
size_t VoteAccumulator::TakePositions(TouchedPositions* positions) {
  constexpr int kUsual = 4;
  size_t count = 0;
  for (; touched_words_ != 0; touched_words_ &= touched_words_ - 1) {
    const auto word = static_cast<uint32_t>(std::countr_zero(touched_words_));
    uint64_t bits = std::exchange(touched_[word], 0);
    const auto take = [&] {
      (*positions)[count] = static_cast<uint16_t>(word * 64 + std::countr_zero(bits));
      count += bits != 0;
      bits &= bits - 1;
    };
    for (int i = 0; i < kUsual; ++i) take();
    while (bits != 0) take();
  }
  return count;
}

void VoteAccumulator::EmitBlock(Votes* votes) {
  TouchedPositions positions;
  std::array<int16_t, kBlockElements> values;
  const size_t touched = TakePositions(&positions);
  size_t count = 0;
  for (size_t i = 0; i < touched; ++i) {
    const uint16_t position = positions[i];
    positions[count] = position;
    values[count] = std::exchange(sums_[position], 0);
    count += values[count] != 0;
  }
  votes->positions.insert(votes->positions.end(), positions.begin(), positions.begin() + count);
  votes->values.insert(votes->values.end(), values.begin(), values.begin() + count);
  votes->offsets.push_back(static_cast<uint32_t>(votes->positions.size()));
}

}  // namespace distro
