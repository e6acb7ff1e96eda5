#include <algorithm>
#include <cstdlib>

#include "common/base/bytes.h"
#include "common/codec/gap_codec.h"

namespace distro {
namespace {

uint32_t BlockCount(const Votes& votes, int64_t block) {
  return votes.offsets[block + 1] - votes.offsets[block];
}

// How many entries from `begin` on, at most kMaxOnes, have |V| = 1.
uint32_t OnesFrom(const Votes& votes, uint32_t begin, uint32_t end) {
  end = std::min(end, begin + kMaxOnes);
  uint32_t i = begin;
  while (i < end && (votes.values[i] == 1 || votes.values[i] == -1)) ++i;
  return i - begin;
}

// Tells the sink the numbers of the group of blocks first .. last-1 in the order of the stream.
template <typename Sink>
void WalkGroup(const Votes& votes, int64_t first, int64_t last, Sink* sink) {
  uint32_t ones_begin = votes.offsets[first];  // where the next run of ones starts
  uint32_t larger = UINT32_MAX;                // the entry that ends the current run of ones
  for (int64_t block = first, run_end = first; block < last; ++block) {
    if (block == run_end) {
      while (run_end < last && BlockCount(votes, run_end) == BlockCount(votes, block)) ++run_end;
      sink->Run(static_cast<uint32_t>(run_end - block), BlockCount(votes, block));
    }
    uint32_t next = 0;
    for (uint32_t i = votes.offsets[block]; i < votes.offsets[block + 1]; ++i) {
      if (i == ones_begin) {
        const uint32_t ones = OnesFrom(votes, i, votes.offsets[last]);
        sink->Ones(ones);
        larger = ones < kMaxOnes ? i + ones : UINT32_MAX;
        ones_begin = ones < kMaxOnes ? i + ones + 1 : i + ones;
      }
      sink->Gap(votes.positions[i] - next, votes.values[i] < 0);
      if (i == larger) sink->Magnitude(static_cast<uint32_t>(std::abs(votes.values[i])));
      next = uint32_t{votes.positions[i]} + 1;
    }
  }
  sink->EndGroup();
}

template <typename Sink>
void Walk(const Votes& votes, Sink* sink) {
  for (int64_t first = 0; first < votes.blocks(); first += kGroupBlocks) {
    WalkGroup(votes, first, std::min<int64_t>(first + kGroupBlocks, votes.blocks()), sink);
  }
}

// First walk: counts. Gaps, of which there is one an entry, are counted as they are.
class Counter {
 public:
  void Run(uint32_t blocks, uint32_t count) {
    ++model_.repeats[BucketOf<kRepeatMantissa>(blocks - 1).symbol];
    ++model_.counts[BucketOf<kCountMantissa>(count).symbol];
  }
  void Ones(uint32_t ones) { ++model_.ones[BucketOf<kOnesMantissa>(ones).symbol]; }
  void Gap(uint32_t gap, bool negative) { ++gaps_[gap]; }
  void Magnitude(uint32_t magnitude) {
    ++model_.magnitudes[BucketOf<kMagnitudeMantissa>(magnitude - 2).symbol];
  }
  void EndGroup() {}

  // Of all that was counted.
  GapModel Model() const {
    GapModel model = model_;
    for (uint32_t gap = 0; gap < gaps_.size(); ++gap)
      model.gaps[BucketOf<kGapMantissa>(gap).symbol] += gaps_[gap];
    return model;
  }

 private:
  GapModel model_;
  std::array<uint32_t, kBlockElements> gaps_{};
};

// What a gap is in the stream, but for the sign bit between code and raw bits: 16 KB for all gaps.
struct GapBits {
  uint32_t bits : 20;
  uint32_t sign_at : 6;
  uint32_t length : 6;
};
static_assert(sizeof(GapBits) == sizeof(uint32_t));
static_assert(kMaxCodeLength + 1 + RangeOf<kGapMantissa>(kGapSymbols - 1).raw_bits <= 20);

// Second walk: writes groups and their sizes.
class GroupWriter {
 public:
  // Appends to `body`; the sizes go to (*body)[sizes...], which exists.
  GroupWriter(const GapCodeLengths& lengths, size_t sizes, std::string* body)
      : lengths_(lengths), body_(body), sizes_(sizes), group_begin_(body->size()), writer_(body) {
    codes_.ForEach(
        [](absl::string_view, auto& codes, const auto& alphabet) {
          const std::vector<uint16_t> made = PrefixCodes(alphabet);
          std::copy(made.begin(), made.end(), codes.begin());
        },
        lengths);
    for (uint32_t gap = 0; gap < gaps_.size(); ++gap) {
      const Bucket bucket = BucketOf<kGapMantissa>(gap);
      const auto code_bits = static_cast<uint32_t>(CodeBits(lengths.gaps[bucket.symbol]));
      gaps_[gap] = {.bits = codes_.gaps[bucket.symbol] |
                            static_cast<uint32_t>(Low(gap, bucket.raw_bits) << (code_bits + 1)),
                    .sign_at = code_bits,
                    .length = code_bits + 1 + static_cast<uint32_t>(bucket.raw_bits)};
    }
  }

  void Run(uint32_t blocks, uint32_t count) {
    WriteNumber<kRepeatMantissa>(blocks - 1, codes_.repeats, lengths_.repeats);
    WriteNumber<kCountMantissa>(count, codes_.counts, lengths_.counts);
  }
  void Ones(uint32_t ones) { WriteNumber<kOnesMantissa>(ones, codes_.ones, lengths_.ones); }
  void Gap(uint32_t gap, bool negative) {
    const GapBits coded = gaps_[gap];
    writer_.Write(coded.bits | uint64_t{negative} << coded.sign_at, coded.length);
  }
  void Magnitude(uint32_t magnitude) {
    WriteNumber<kMagnitudeMantissa>(magnitude - 2, codes_.magnitudes, lengths_.magnitudes);
  }
  void EndGroup() {
    writer_.AlignToByte();
    const auto size = static_cast<uint32_t>(body_->size() - group_begin_);
    std::memcpy(body_->data() + sizes_, &size, sizeof(size));
    sizes_ += sizeof(size);
    group_begin_ = body_->size();
  }

 private:
  static uint64_t Low(uint32_t value, int bits) { return value & ((uint64_t{1} << bits) - 1); }

  template <int mantissa, typename Codes, typename Lengths>
  void WriteNumber(uint32_t value, const Codes& codes, const Lengths& lengths) {
    const Bucket bucket = BucketOf<mantissa>(value);
    writer_.Write(codes[bucket.symbol], CodeBits(lengths[bucket.symbol]));
    writer_.Write(Low(value, bucket.raw_bits), bucket.raw_bits);
  }

  const GapCodeLengths& lengths_;
  GapAlphabets<uint16_t> codes_;
  std::array<GapBits, kBlockElements> gaps_;
  std::string* const body_;
  size_t sizes_;
  size_t group_begin_;
  BitWriter writer_;
};

}  // namespace

void EncodeGaps(const Votes& votes, std::string* body) {
  Counter counter;
  Walk(votes, &counter);
  const GapCodeLengths lengths = LengthsOf(counter.Model());
  body->append(EncodeTables(lengths));
  const size_t sizes = body->size();
  body->append(4 * ((votes.blocks() + kGroupBlocks - 1) / kGroupBlocks), '\0');
  GroupWriter writer(lengths, sizes, body);
  Walk(votes, &writer);
}

uint64_t MaxGapBodyBytes(uint64_t blocks, uint64_t max_entries, uint64_t max_sum) {
  // Tables: at most 6 bits a symbol (a length, one unused, or 12 for two unused). A number: its
  // code and raw bits. Ones stand once a group and after every |V| >= 2 and every 1023 entries.
  constexpr uint64_t kTableBytes = sizeof(GapCodeLengths) * 6 / 8 + 8;
  constexpr uint64_t kRunBits = 2 * kMaxCodeLength +
                                RangeOf<kRepeatMantissa>(kRepeatSymbols - 1).raw_bits +
                                RangeOf<kCountMantissa>(kCountSymbols - 1).raw_bits;
  constexpr uint64_t kGapBits =
      kMaxCodeLength + 1 + RangeOf<kGapMantissa>(kGapSymbols - 1).raw_bits;
  constexpr uint64_t kOnesBits = kMaxCodeLength + RangeOf<kOnesMantissa>(kOnesSymbols - 1).raw_bits;
  constexpr uint64_t kMagnitudeBits =
      kMaxCodeLength + RangeOf<kMagnitudeMantissa>(kMagnitudeSymbols - 1).raw_bits;
  const uint64_t large = std::min(max_entries, max_sum / 2);
  const uint64_t groups = (blocks + kGroupBlocks - 1) / kGroupBlocks;
  const uint64_t ones = blocks * large + blocks * max_entries / kMaxOnes + groups;
  const uint64_t bits =
      blocks * (kRunBits + max_entries * kGapBits + large * kMagnitudeBits) + ones * kOnesBits;
  return kTableBytes + groups * 5 + (bits + 7) / 8;
}

}  // namespace distro
