// The alphabets of the gap codec: how a block's count, gaps and magnitudes become symbols and raw bits, and the counts
// of symbols from which the codes follow. Encoder and decoder build the same model, which is how the decoder knows
// that the codes it was given are the ones an encoder would have chosen.
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

inline constexpr int kRunMantissa = 3;            // blocks of a run - 1, 0..255
inline constexpr int kCountMantissa = 4;          // counts 0..4096
inline constexpr int kGapMantissa = 2;            // gaps 0..4095
inline constexpr int kMagnitudeMantissa = 5;      // |V| - 3, 0..32764
inline constexpr uint32_t kMagnitudeClasses = 3;  // |V| = 1, |V| = 2, larger

inline constexpr uint32_t kGroupBlocks = 256;
inline constexpr uint32_t kRunSymbols = BucketOf<kRunMantissa>(kGroupBlocks - 1).symbol + 1;
inline constexpr uint32_t kCountSymbols = BucketOf<kCountMantissa>(kBlockElements).symbol + 1;
inline constexpr uint32_t kGapBuckets = BucketOf<kGapMantissa>(kBlockElements - 1).symbol + 1;
inline constexpr uint32_t kEntrySymbols =
    kGapBuckets * kMagnitudeClasses;  // gap bucket * 3 + class
inline constexpr uint32_t kMagnitudeSymbols = BucketOf<kMagnitudeMantissa>(32767 - 3).symbol + 1;

// Entries share a code when they expect a gap of the same octave: `room` positions are left for
// `left` entries, 1 <= left <= room <= 4096.
inline constexpr int kGapOctaves = 13;
inline int GapOctave(uint32_t room, uint32_t left) {
  return std::bit_width(room) - std::bit_width(left);
}

// All alphabets of a segment, in the order in which their tables are written.
template <typename Value>
struct GapAlphabets {
  std::array<Value, kRunSymbols> runs{};
  std::array<Value, kCountSymbols> counts{};
  std::array<std::array<Value, kEntrySymbols>, kGapOctaves> entries{};
  std::array<Value, kMagnitudeSymbols> magnitudes{};

  // Calls function(name, alphabet, alphabets of others...) for each.
  template <typename Function, typename... Others>
  void ForEach(Function function, Others&... others) {
    function("runs", runs, others.runs...);
    function("counts", counts, others.counts...);
    for (int octave = 0; octave < kGapOctaves; ++octave) {
      function("entries", entries[octave], others.entries[octave]...);
    }
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
