#include "common/method/deltas/dense_combine.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "common/method/deltas/scale.h"

namespace distro {
namespace {

// The symbol of a mean of this level, which is kLevels if the mean is too small for an entry.
uint8_t SymbolOf(int level, int64_t mean) {
  return mean == 0 || level == kLevels ? uint8_t{0} : DenseSymbol(level, mean < 0);
}

// Byte j of the result has bit j of each byte: an 8 x 8 matrix of bits, transposed (Warren,
// Hacker's Delight, section 7-3).
uint64_t Transpose(uint64_t x) {
  uint64_t t = (x ^ (x >> 7)) & 0x00AA00AA00AA00AA;
  x ^= t ^ (t << 7);
  t = (x ^ (x >> 14)) & 0x0000CCCC0000CCCC;
  x ^= t ^ (t << 14);
  t = (x ^ (x >> 28)) & 0x00000000F0F0F0F0;
  return x ^ t ^ (t << 28);
}

// Calls row(first, count) for the positions of each row inside the tensor.
template <typename Row>
void ForEachRow(const BlockExtent& extent, Row row) {
  for (int r = 0; r < extent.rows; ++r) row(r * kBlockSide, extent.ColsOfRow(r));
}

}  // namespace

DenseBlock DenseAccumulator::Combine(const BlockExtent& extent, absl::Span<const DenseSent> sent,
                                     uint8_t* symbols) {
  std::memset(symbols, 0, kBlockElements);
  if (sent.empty()) return {};
  int64_t senders = 0;
  for (const DenseSent& of : sent) senders += of.weight;
  const int64_t divisor =
      rule_.divisor == Divisor::kAll ? rule_.weights : std::max(senders, rule_.least_senders);
  return sent.size() <= kPatternBits ? CombineFew(extent, sent, divisor, symbols)
                                     : CombineMany(extent, sent, divisor, symbols);
}

void DenseAccumulator::FormPatterns(absl::Span<const DenseSent> sent) {
  for (size_t byte = 0; byte < kBlockSignBytes; ++byte) {
    uint64_t rows = 0;
    for (size_t w = 0; w < sent.size(); ++w)
      rows |= uint64_t{static_cast<uint8_t>(sent[w].signs[byte])} << (8 * w);
    rows = Transpose(rows);
    std::memcpy(patterns_.data() + 8 * byte, &rows, sizeof(rows));
  }
}

DenseAccumulator::PatternSums DenseAccumulator::SumsOf(absl::Span<const DenseSent> sent) {
  PatternSums sums;
  sums[0] = 0;
  for (size_t w = 0; w < sent.size(); ++w) {
    const size_t half = size_t{1} << w;
    for (size_t pattern = 0; pattern < half; ++pattern) {
      sums[half + pattern] = sums[pattern] - sent[w].value;
      sums[pattern] += sent[w].value;
    }
  }
  return sums;
}

DenseBlock DenseAccumulator::CombineFew(const BlockExtent& extent, absl::Span<const DenseSent> sent,
                                        int64_t divisor, uint8_t* symbols) {
  FormPatterns(sent);
  // Only patterns that occur count towards the block's largest mean.
  std::array<bool, kPatterns> occurs{};
  ForEachRow(extent, [&](int first, int count) {
    for (int i = first; i < first + count; ++i) occurs[patterns_[i]] = true;
  });
  PatternSums means = SumsOf(sent);
  int64_t largest = 0;
  for (size_t pattern = 0; pattern < size_t{1} << sent.size(); ++pattern) {
    if (!occurs[pattern]) continue;
    means[pattern] = rounding_.Mean(means[pattern], divisor);
    largest = std::max(largest, std::abs(means[pattern]));
  }
  const uint8_t code = CoveringScale(largest);
  const LevelBounds bounds(code);
  std::array<uint8_t, kPatterns> symbol_of{};
  for (size_t pattern = 0; pattern < size_t{1} << sent.size(); ++pattern) {
    if (!occurs[pattern]) continue;
    const int64_t mean = means[pattern];
    symbol_of[pattern] = SymbolOf(bounds.LevelOf(std::abs(mean)), mean);
  }
  DenseBlock block = {.code = code};
  ForEachRow(extent, [&](int first, int count) {
    for (int i = first; i < first + count; ++i) {
      symbols[i] = symbol_of[patterns_[i]];
      block.entries += means[patterns_[i]] != 0 ? 1 : 0;
    }
  });
  return block;
}

DenseBlock DenseAccumulator::CombineMany(const BlockExtent& extent,
                                         absl::Span<const DenseSent> sent, int64_t divisor,
                                         uint8_t* symbols) {
  sums_.fill(0);
  for (; !sent.empty(); sent.remove_prefix(std::min(sent.size(), kPatternBits))) {
    const absl::Span<const DenseSent> some = sent.first(std::min(sent.size(), kPatternBits));
    FormPatterns(some);
    const PatternSums sums = SumsOf(some);
    for (int i = 0; i < kBlockElements; ++i) sums_[i] += sums[patterns_[i]];
  }
  DenseBlock block;
  int64_t largest = 0;
  ForEachRow(extent, [&](int first, int count) {
    for (int i = first; i < first + count; ++i) {
      sums_[i] = rounding_.Mean(sums_[i], divisor);
      magnitudes_[i] = std::abs(sums_[i]);
      largest = std::max(largest, magnitudes_[i]);
      block.entries += sums_[i] != 0 ? 1 : 0;
    }
  });
  block.code = CoveringScale(largest);
  const LevelBounds bounds(block.code);
  ForEachRow(extent, [&](int first, int count) {
    std::array<uint8_t, kBlockSide> levels;
    bounds.LevelsOf(magnitudes_.data() + first, count, levels.data());
    for (int i = 0; i < count; ++i) symbols[first + i] = SymbolOf(levels[i], sums_[first + i]);
  });
  return block;
}

}  // namespace distro
