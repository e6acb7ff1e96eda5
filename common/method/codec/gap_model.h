// The alphabets of the gap codec: how the numbers of a body become symbols and raw bits, and the
// counts of symbols from which the codes follow. Encoder and decoder build the same model, so that
// the decoder can check that the codes in the body are the ones an encoder chooses.
//
//   GapModel<Format> model;                                      // how often each symbol occurs
//   ++model.of<Gaps>()[BucketFor<Gaps>(gap).symbol];
//   std::string tables = EncodeTables<Format>(LengthsOf<Format>(model));
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/method/codec/prefix_code.h"
#include "common/model/layout/matrix.h"

namespace distro {

// Numbers in buckets, with m mantissa bits: a number below 2^(m+1) is its own symbol. Above, each
// octave has 2^m buckets, and the rest of the number follows in raw bits.
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

// A difference as a number: 0, -1, 1, -2, ... become 0, 1, 2, 3, ...
constexpr uint32_t ZigZag(int difference) {
  return difference < 0 ? 2 * static_cast<uint32_t>(-difference) - 1
                        : 2 * static_cast<uint32_t>(difference);
}
constexpr int UnZigZag(uint32_t number) {
  const auto half = static_cast<int>(number / 2);
  return number % 2 == 0 ? half : -half - 1;
}

// The kinds of numbers: each has a name for messages, the mantissa bits of its buckets, and its
// largest value.
struct Repeats {  // blocks of a run of equal counts - 1
  static constexpr absl::string_view kName = "repeats";
  static constexpr int kMantissa = 3;
  static constexpr uint32_t kLargest = 255;
};
struct Counts {  // entries of a block
  static constexpr absl::string_view kName = "counts";
  static constexpr int kMantissa = 4;
  static constexpr uint32_t kLargest = kBlockElements;
};
struct Gaps {  // exact below 256, as whole rows of 64 repeat
  static constexpr absl::string_view kName = "gaps";
  static constexpr int kMantissa = 7;
  static constexpr uint32_t kLargest = kBlockElements - 1;
};

template <typename Kind>
constexpr Bucket BucketFor(uint32_t number) {
  return BucketOf<Kind::kMantissa>(number);
}
template <typename Kind>
inline constexpr uint32_t kSymbols = BucketFor<Kind>(Kind::kLargest).symbol + 1;
// The most raw bits that follow a symbol.
template <typename Kind>
inline constexpr int kRawBits = RangeOf<Kind::kMantissa>(kSymbols<Kind> - 1).raw_bits;

inline constexpr uint32_t kGroupBlocks = Repeats::kLargest + 1;
constexpr uint32_t GroupsOf(uint64_t blocks) {
  return static_cast<uint32_t>((blocks + kGroupBlocks - 1) / kGroupBlocks);
}

// One member for each kind, in the order in which their tables are written.
template <template <typename> class Member, typename... Kinds>
struct OfKinds : Member<Kinds>... {
  template <typename Kind>
  auto& of() {
    return Member<Kind>::value;
  }
  template <typename Kind>
  const auto& of() const {
    return Member<Kind>::value;
  }
  // Calls function.operator()<Kind>() for each.
  template <typename Function>
  static void ForEach(Function function) {
    (function.template operator()<Kinds>(), ...);
  }
};

// One value for each symbol.
template <typename Value>
struct PerSymbol {
  template <typename Kind>
  struct Member {
    std::array<Value, kSymbols<Kind>> value{};
  };
};

// The contents of a body: a format has its own kinds of numbers. Most entries are plain; Plain
// counts runs of them, and Other is the number that an entry has which ends a run. A block with
// entries begins with a number of the kind OfBlock, unless it is void.
//
//   struct Format {
//     using Plain = ...;  using Other = ...;  using OfBlock = ...;      // kinds
//     template <template <typename> class Member>
//     using Of = OfKinds<Member, Repeats, Counts, Gaps, ..., Plain, Other>;
//     struct Block;                               // one block's entries: count, positions, ...
//     struct GroupState;                          // a decoder's, between the blocks of a group
//   };

// How often each symbol occurs in a segment.
template <typename Format>
using GapModel = typename Format::template Of<PerSymbol<uint64_t>::Member>;
template <typename Format>
using GapCodeLengths = typename Format::template Of<PerSymbol<CodeLength>::Member>;

// Adds the symbols of other blocks.
template <typename Format>
void AddModel(const GapModel<Format>& model, GapModel<Format>* sum) {
  model.ForEach([&]<typename Kind>() {
    auto& total = sum->template of<Kind>();
    for (size_t symbol = 0; symbol < total.size(); ++symbol)
      total[symbol] += model.template of<Kind>()[symbol];
  });
}

template <typename Format>
GapCodeLengths<Format> LengthsOf(const GapModel<Format>& model) {
  GapCodeLengths<Format> lengths;
  lengths.ForEach([&]<typename Kind>() {
    std::ranges::copy(CodeLengths(model.template of<Kind>()), lengths.template of<Kind>().begin());
  });
  return lengths;
}

// The tables of a body, padded to a whole byte.
template <typename Format>
std::string EncodeTables(const GapCodeLengths<Format>& lengths) {
  std::string bytes;
  BitWriter writer(&bytes);
  lengths.ForEach([&]<typename Kind>() { WriteCodeLengths(lengths.template of<Kind>(), &writer); });
  writer.AlignToByte();
  return bytes;
}

// Reads the output of EncodeTables, without the padding. InvalidArgument as ReadCodeLengths.
template <typename Format>
absl::StatusOr<GapCodeLengths<Format>> ReadTables(BitReader* reader) {
  GapCodeLengths<Format> lengths;
  absl::Status status;
  lengths.ForEach([&]<typename Kind>() {
    if (status.ok()) {
      status = ReadCodeLengths(reader, Kind::kName, absl::MakeSpan(lengths.template of<Kind>()));
    }
  });
  if (!status.ok()) return status;
  return lengths;
}

}  // namespace distro
