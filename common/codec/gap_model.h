// The alphabets of the gap codec: how a block's count, gaps and magnitudes become symbols and raw
// bits, and the counts of symbols from which the codes follow. Encoder and decoder build the same
// model, which is how the decoder knows that the codes it was given are the ones an encoder would
// have chosen.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/codec/prefix_code.h"
#include "common/layout/matrix.h"

namespace distro {

// Numbers in buckets: those below 2^(m+1) are their own symbol, above an octave has 2^m buckets and
// the rest of the number follows in raw bits.
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

inline constexpr int kRepeatMantissa = 3;  // blocks of a run of equal counts - 1, 0..255
inline constexpr int kCountMantissa = 4;   // counts 0..4096
inline constexpr int kGapMantissa = 7;  // gaps 0..4095: exact below 256, as whole rows of 64 repeat
inline constexpr int kOnesMantissa = 5;       // entries with |V| = 1 in a run, 0..kMaxOnes
inline constexpr int kMagnitudeMantissa = 5;  // |V| - 2, 0..32765

inline constexpr uint32_t kGroupBlocks = 256;
inline constexpr uint32_t kMaxOnes = 1023;
inline constexpr uint32_t kRepeatSymbols = BucketOf<kRepeatMantissa>(kGroupBlocks - 1).symbol + 1;
inline constexpr uint32_t kCountSymbols = BucketOf<kCountMantissa>(kBlockElements).symbol + 1;
inline constexpr uint32_t kGapSymbols = BucketOf<kGapMantissa>(kBlockElements - 1).symbol + 1;
inline constexpr uint32_t kOnesSymbols = BucketOf<kOnesMantissa>(kMaxOnes).symbol + 1;
inline constexpr uint32_t kMagnitudeSymbols = BucketOf<kMagnitudeMantissa>(32767 - 2).symbol + 1;

// All alphabets of a segment, in the order in which their tables are written.
template <typename Value>
struct GapAlphabets {
  std::array<Value, kRepeatSymbols> repeats{};
  std::array<Value, kCountSymbols> counts{};
  std::array<Value, kGapSymbols> gaps{};
  std::array<Value, kOnesSymbols> ones{};
  std::array<Value, kMagnitudeSymbols> magnitudes{};

  // Calls function(name, alphabet, alphabets of others...) for each.
  template <typename Function, typename... Others>
  void ForEach(Function function, Others&... others) {
    function("repeats", repeats, others.repeats...);
    function("counts", counts, others.counts...);
    function("gaps", gaps, others.gaps...);
    function("ones", ones, others.ones...);
    function("magnitudes", magnitudes, others.magnitudes...);
  }
};

// How often each symbol occurs in a segment.
using GapModel = GapAlphabets<uint64_t>;
using GapCodeLengths = GapAlphabets<CodeLength>;
GapCodeLengths LengthsOf(const GapModel& model);
// The tables of a body, padded to a whole byte.
std::string EncodeTables(const GapCodeLengths& lengths);
// What EncodeTables wrote, without the padding. InvalidArgument as ReadCodeLengths.
absl::StatusOr<GapCodeLengths> ReadTables(BitReader* reader);

}  // namespace distro
