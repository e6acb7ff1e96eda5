// The alphabets of the gap codec: how a block's count, gaps and magnitudes become symbols and raw bits, and the counts
// of symbols from which the codes follow. Encoder and decoder build the same model, which is how the decoder knows
// that the codes it was given are the ones an encoder would have chosen.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "common/codec/prefix_code.h"
#include "common/layout/matrix.h"

namespace distro {

// Numbers in buckets: those below 2^(m+1) are their own symbol, above an octave has 2^m buckets and the rest of the
// number follows in raw bits.
struct Bucket {
  uint32_t symbol;
  int raw_bits;
};
template <int mantissa_bits>
constexpr Bucket BucketOf(uint32_t value) {
  const int octave = std::bit_width(value) - 1 - mantissa_bits;
  if (octave <= 0) return {value, 0};
  return {(static_cast<uint32_t>(octave) << mantissa_bits) + (value >> octave), octave};
}

// The smallest number of a bucket and how many raw bits follow.
struct BucketRange {
  uint32_t first;
  int raw_bits;
};
template <int mantissa_bits>
constexpr BucketRange RangeOf(uint32_t symbol) {
  constexpr uint32_t kBuckets = 1u << mantissa_bits;
  if (symbol < 2 * kBuckets) return {symbol, 0};
  const int octave = static_cast<int>(symbol >> mantissa_bits) - 1;
  return {(symbol - (static_cast<uint32_t>(octave) << mantissa_bits)) << octave, octave};
}

inline constexpr int kCountMantissa = 4;          // counts 0..4096
inline constexpr int kGapMantissa = 2;            // gaps 0..4095
inline constexpr int kMagnitudeMantissa = 5;      // |V| - 3, 0..32764
inline constexpr uint32_t kMagnitudeClasses = 3;  // |V| = 1, |V| = 2, larger

inline constexpr uint32_t kCountSymbols = BucketOf<kCountMantissa>(kBlockElements).symbol + 1;
inline constexpr uint32_t kGapBuckets = BucketOf<kGapMantissa>(kBlockElements - 1).symbol + 1;
inline constexpr uint32_t kEntrySymbols =
    kGapBuckets * kMagnitudeClasses;  // gap bucket * 3 + class
inline constexpr uint32_t kMagnitudeSymbols = BucketOf<kMagnitudeMantissa>(32767 - 3).symbol + 1;

// Blocks of similar counts share a code for their entries: class c holds the counts of c binary digits.
inline constexpr int kCountClasses = 14;
inline int CountClass(uint32_t count) { return std::bit_width(count); }

// How often each symbol occurs in a segment.
struct GapModel {
  std::array<uint64_t, kCountSymbols> counts{};
  std::array<std::array<uint64_t, kEntrySymbols>, kCountClasses> entries{};
  std::array<uint64_t, kMagnitudeSymbols> magnitudes{};
};

// The code lengths of all alphabets in the order in which they are written: counts, entries of class 1..13,
// magnitudes.
struct GapCodeLengths {
  std::vector<CodeLength> counts;
  std::array<std::vector<CodeLength>, kCountClasses> entries;
  std::vector<CodeLength> magnitudes;
};
GapCodeLengths LengthsOf(const GapModel& model);
// The tables of a body, padded to a whole byte.
std::string EncodeTables(const GapCodeLengths& lengths);

}  // namespace distro
