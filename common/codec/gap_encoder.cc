#include <algorithm>
#include <cstdlib>

#include "common/base/bytes.h"
#include "common/codec/gap_codec.h"

namespace distro {
namespace {

uint32_t BlockCount(const Votes& votes, int64_t block) {
  return votes.offsets[block + 1] - votes.offsets[block];
}

// Calls the sink's run(blocks, count) before each run of blocks of equal count, entry(octave, gap, value) for each
// entry, end_group() after each group: the order of the stream.
template <typename Sink>
void Walk(const Votes& votes, Sink* sink) {
  for (int64_t group = 0; group < votes.blocks(); group += kGroupBlocks) {
    const int64_t end = std::min<int64_t>(group + kGroupBlocks, votes.blocks());
    for (int64_t block = group, run_end = group; block < end; ++block) {
      if (block == run_end) {
        while (run_end < end && BlockCount(votes, run_end) == BlockCount(votes, block)) ++run_end;
        sink->Run(static_cast<uint32_t>(run_end - block), BlockCount(votes, block));
      }
      uint32_t next = 0;
      for (uint32_t i = votes.offsets[block]; i < votes.offsets[block + 1]; ++i) {
        const int octave = GapOctave(kBlockElements - next, votes.offsets[block + 1] - i);
        sink->Entry(octave, votes.positions[i] - next, votes.values[i]);
        next = uint32_t{votes.positions[i]} + 1;
      }
    }
    sink->EndGroup();
  }
}

// The symbol of an entry.
uint32_t EntrySymbol(uint32_t gap, uint32_t magnitude) {
  return BucketOf<kGapMantissa>(gap).symbol * kMagnitudeClasses +
         std::min(magnitude, kMagnitudeClasses) - 1;
}

// First walk: counts symbols.
struct Counter {
  void Run(uint32_t blocks, uint32_t count) {
    ++model.runs[BucketOf<kRunMantissa>(blocks - 1).symbol];
    ++model.counts[BucketOf<kCountMantissa>(count).symbol];
  }
  void Entry(int octave, uint32_t gap, int value) {
    const auto magnitude = static_cast<uint32_t>(std::abs(value));
    ++model.entries[octave][EntrySymbol(gap, magnitude)];
    if (magnitude < kMagnitudeClasses) return;
    ++model.magnitudes[BucketOf<kMagnitudeMantissa>(magnitude - kMagnitudeClasses).symbol];
  }
  void EndGroup() {}

  GapModel model;
};

// Second walk: writes groups and their sizes.
class GroupWriter {
 public:
  // Appends to `body`; sizes go to body[sizes...], which exists.
  GroupWriter(const GapCodeLengths& lengths, size_t sizes, std::string* body)
      : lengths_(lengths), body_(body), sizes_(sizes), group_begin_(body->size()), writer_(body) {
    codes_.ForEach(
        [](absl::string_view, auto& codes, const auto& alphabet) {
          const std::vector<uint16_t> made = PrefixCodes(alphabet);
          std::copy(made.begin(), made.end(), codes.begin());
        },
        lengths);
  }

  void Run(uint32_t blocks, uint32_t count) {
    WriteNumber<kRunMantissa>(blocks - 1, codes_.runs, lengths_.runs);
    WriteNumber<kCountMantissa>(count, codes_.counts, lengths_.counts);
  }
  void Entry(int octave, uint32_t gap, int value) {
    const auto magnitude = static_cast<uint32_t>(std::abs(value));
    const uint32_t symbol = EntrySymbol(gap, magnitude);
    const int raw_bits = BucketOf<kGapMantissa>(gap).raw_bits;
    writer_.Write(codes_.entries[octave][symbol], CodeBits(lengths_.entries[octave][symbol]));
    writer_.Write((Low(gap, raw_bits) << 1) | (value < 0), raw_bits + 1);
    if (magnitude < kMagnitudeClasses) return;
    WriteNumber<kMagnitudeMantissa>(magnitude - kMagnitudeClasses, codes_.magnitudes,
                                    lengths_.magnitudes);
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
  std::string* const body_;
  size_t sizes_;
  size_t group_begin_;
  BitWriter writer_;
};

}  // namespace

void EncodeGaps(const Votes& votes, std::string* body) {
  Counter counter;
  Walk(votes, &counter);
  const GapCodeLengths lengths = LengthsOf(counter.model);
  body->append(EncodeTables(lengths));
  const size_t sizes = body->size();
  body->append(4 * ((votes.blocks() + kGroupBlocks - 1) / kGroupBlocks), '\0');
  GroupWriter writer(lengths, sizes, body);
  Walk(votes, &writer);
}

uint64_t MaxGapBodyBytes(uint64_t blocks, uint64_t max_entries, uint64_t max_sum) {
  // Tables: at most 6 bits a symbol (a length and a run of one unused). A block: run and count, per entry code, sign
  // and raw bits of the gap, per |V| >= 3 code and raw bits.
  constexpr uint64_t kTableBytes = sizeof(GapCodeLengths) * 6 / 8 + kGapOctaves + 4;
  constexpr uint64_t kCountBits = 2 * kMaxCodeLength +
                                  RangeOf<kRunMantissa>(kRunSymbols - 1).raw_bits +
                                  RangeOf<kCountMantissa>(kCountSymbols - 1).raw_bits;
  constexpr uint64_t kEntryBits =
      kMaxCodeLength + 1 + RangeOf<kGapMantissa>(kGapBuckets - 1).raw_bits;
  constexpr uint64_t kMagnitudeBits =
      kMaxCodeLength + RangeOf<kMagnitudeMantissa>(kMagnitudeSymbols - 1).raw_bits;
  const uint64_t large = std::min(max_entries, max_sum / kMagnitudeClasses);
  const uint64_t groups = (blocks + kGroupBlocks - 1) / kGroupBlocks;
  const uint64_t bits = blocks * (kCountBits + max_entries * kEntryBits + large * kMagnitudeBits);
  return kTableBytes + groups * 5 + (bits + 7) / 8;
}

}  // namespace distro
