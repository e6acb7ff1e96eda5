#include <algorithm>
#include <cstdlib>

#include "common/base/bytes.h"
#include "common/codec/gap_codec.h"

namespace distro {
namespace {

// The codes of all alphabets.
struct GapCodes {
  explicit GapCodes(const GapCodeLengths& lengths_in)
      : lengths(lengths_in),
        counts(PrefixCodes(lengths.counts)),
        magnitudes(PrefixCodes(lengths.magnitudes)) {
    for (int c = 1; c < kCountClasses; ++c) entries[c] = PrefixCodes(lengths.entries[c]);
  }

  const GapCodeLengths& lengths;
  std::vector<uint16_t> counts;
  std::array<std::vector<uint16_t>, kCountClasses> entries;
  std::vector<uint16_t> magnitudes;
};

uint32_t MagnitudeClass(uint32_t magnitude) { return std::min(magnitude, kMagnitudeClasses) - 1; }

// Calls per_entry(gap, value) for each entry of a block.
template <typename PerEntry>
void ForEachEntry(const Votes& votes, int64_t block, PerEntry per_entry) {
  uint32_t next = 0;
  for (uint32_t i = votes.offsets[block]; i < votes.offsets[block + 1]; ++i) {
    per_entry(votes.positions[i] - next, int{votes.values[i]});
    next = uint32_t{votes.positions[i]} + 1;
  }
}

uint32_t BlockCount(const Votes& votes, int64_t block) {
  return votes.offsets[block + 1] - votes.offsets[block];
}

GapModel ModelOf(const Votes& votes) {
  GapModel model;
  for (int64_t block = 0; block < votes.blocks(); ++block) {
    const uint32_t count = BlockCount(votes, block);
    ++model.counts[BucketOf<kCountMantissa>(count).symbol];
    auto& entries = model.entries[CountClass(count)];
    ForEachEntry(votes, block, [&](uint32_t gap, int value) {
      const auto magnitude = static_cast<uint32_t>(std::abs(value));
      ++entries[BucketOf<kGapMantissa>(gap).symbol * kMagnitudeClasses + MagnitudeClass(magnitude)];
      if (magnitude >= kMagnitudeClasses) {
        ++model.magnitudes[BucketOf<kMagnitudeMantissa>(magnitude - kMagnitudeClasses).symbol];
      }
    });
  }
  return model;
}

uint64_t RawBits(uint32_t value, int bits) { return value & ((uint64_t{1} << bits) - 1); }

void WriteBlock(const Votes& votes, int64_t block, const GapCodes& codes, BitWriter* writer) {
  const uint32_t count = BlockCount(votes, block);
  const Bucket count_bucket = BucketOf<kCountMantissa>(count);
  writer->Write(codes.counts[count_bucket.symbol],
                CodeBits(codes.lengths.counts[count_bucket.symbol]));
  writer->Write(RawBits(count, count_bucket.raw_bits), count_bucket.raw_bits);
  const auto& entry_codes = codes.entries[CountClass(count)];
  const auto& entry_lengths = codes.lengths.entries[CountClass(count)];
  ForEachEntry(votes, block, [&](uint32_t gap, int value) {
    const auto magnitude = static_cast<uint32_t>(std::abs(value));
    const Bucket bucket = BucketOf<kGapMantissa>(gap);
    const uint32_t symbol = bucket.symbol * kMagnitudeClasses + MagnitudeClass(magnitude);
    writer->Write(entry_codes[symbol], CodeBits(entry_lengths[symbol]));
    writer->Write((RawBits(gap, bucket.raw_bits) << 1) | (value < 0), bucket.raw_bits + 1);
    if (magnitude < kMagnitudeClasses) return;
    const uint32_t rest = magnitude - kMagnitudeClasses;
    const Bucket large = BucketOf<kMagnitudeMantissa>(rest);
    writer->Write(codes.magnitudes[large.symbol], CodeBits(codes.lengths.magnitudes[large.symbol]));
    writer->Write(RawBits(rest, large.raw_bits), large.raw_bits);
  });
}

}  // namespace

void EncodeGaps(const Votes& votes, std::string* body) {
  const GapCodeLengths lengths = LengthsOf(ModelOf(votes));
  const GapCodes codes(lengths);
  body->append(EncodeTables(lengths));
  const size_t sizes = body->size();
  const int64_t groups = (votes.blocks() + kGroupBlocks - 1) / kGroupBlocks;
  body->append(4 * groups, '\0');
  BitWriter writer(body);
  for (int64_t group = 0; group < groups; ++group) {
    const size_t begin = body->size();
    const int64_t end = std::min<int64_t>((group + 1) * kGroupBlocks, votes.blocks());
    for (int64_t block = group * kGroupBlocks; block < end; ++block)
      WriteBlock(votes, block, codes, &writer);
    writer.AlignToByte();
    const auto size = static_cast<uint32_t>(body->size() - begin);
    std::memcpy(body->data() + sizes + 4 * group, &size, 4);
  }
}

uint64_t MaxGapBodyBytes(uint64_t blocks, uint64_t max_entries, uint64_t max_sum) {
  // Tables: at most 6 bits a symbol (a length and a run of one unused). A block: its count, per entry code, sign and
  // raw bits of the gap, per |V| >= 3 code and raw bits.
  constexpr uint64_t kTableSymbols =
      kCountSymbols + (kCountClasses - 1) * kEntrySymbols + kMagnitudeSymbols;
  constexpr uint64_t kTableBytes = kTableSymbols * 6 / 8 + kCountClasses + 2;
  constexpr uint64_t kCountBits =
      kMaxCodeLength + RangeOf<kCountMantissa>(kCountSymbols - 1).raw_bits;
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
