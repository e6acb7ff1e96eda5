// Combines dense updates (dense_update.h): the same means and levels as CombineDeltas and
// RoundToLevels (combine.h), by counting bits. All who send a block send each of its positions, so
// a position's sum depends only on the pattern of its signs, one bit a worker.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/method/deltas/combine.h"
#include "common/method/deltas/dense_result.h"
#include "common/method/deltas/dense_update.h"
#include "common/model/layout/matrix.h"

namespace distro {

// A worker's block that is not empty; borrowed.
struct DenseSent {
  absl::string_view signs;  // [kBlockSignBytes], DenseUpdate::SignsOf
  int64_t value = 0;        // n_w * M(code)
  int64_t weight = 1;       // n_w
};

// What a block's combination says besides its symbols.
struct DenseBlock {
  uint8_t code = 0;      // as in DeltaResult
  uint32_t entries = 0;  // means that are not 0, also those too small for a symbol
};

// Holds 70 KB of scratch memory. Not thread-safe.
class DenseAccumulator {
 public:
  explicit DenseAccumulator(const MeanRule& rule) : rule_(rule), rounding_(rule.weights) {}

  // Writes the block's symbols [kBlockElements]; positions outside the tensor have no entry.
  // Requires weights that sum to at most kMaxDeltaWeights, and values of
  // at most n_w * kMaxScale.
  DenseBlock Combine(const BlockExtent& extent, absl::Span<const DenseSent> sent, uint8_t* symbols);

 private:
  static constexpr size_t kPatternBits = 8;
  static constexpr size_t kPatterns = 1 << kPatternBits;
  using PatternSums = std::array<int64_t, kPatterns>;

  // patterns_[i] <- bit w is the sign of position i in sent[w]. Requires at most kPatternBits.
  void FormPatterns(absl::Span<const DenseSent> sent);
  // sums_[p]: of the values of `sent` whose signs are the bits of p.
  static PatternSums SumsOf(absl::Span<const DenseSent> sent);
  // Of a block of few workers: one mean a pattern.
  DenseBlock CombineFew(const BlockExtent& extent, absl::Span<const DenseSent> sent,
                        int64_t divisor, uint8_t* symbols);
  // Of any number: one mean a position.
  DenseBlock CombineMany(const BlockExtent& extent, absl::Span<const DenseSent> sent,
                         int64_t divisor, uint8_t* symbols);

  const MeanRule rule_;
  const MeanRounding rounding_;
  std::array<uint8_t, kBlockElements> patterns_;
  std::array<int64_t, kBlockElements> sums_;
  std::array<int64_t, kBlockElements> magnitudes_;
};

}  // namespace distro
