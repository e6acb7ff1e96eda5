#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/status_macros.h"
#include "common/codec/gap_codec.h"

namespace distro {
namespace {

// Where a magnitude class sits in the `first` of an entry's table: above the gap.
constexpr int kClassShift = 12;

uint32_t Raw(uint64_t window, uint32_t skip, uint32_t bits) {
  return static_cast<uint32_t>((window >> skip) & ((uint64_t{1} << bits) - 1));
}

}  // namespace

absl::Status GapDecoder::Bad(absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat("block ", next_, ": ", what));
}

template <typename Range>
GapDecoder::Table GapDecoder::MakeTable(const std::vector<CodeLength>& lengths, Range range_of) {
  Table table;
  const std::vector<uint16_t> codes = PrefixCodes(lengths);
  for (uint32_t symbol = 0; symbol < lengths.size(); ++symbol) {
    if (lengths[symbol] == 0) continue;
    table.resize(kCodeTableSize);
    const uint32_t bits = CodeBits(lengths[symbol]);
    const BucketRange range = range_of(symbol);
    for (uint32_t i = codes[symbol]; i < kCodeTableSize; i += 1u << bits) {
      table[i] = {.code_bits = bits & 15,
                  .raw_bits = static_cast<uint32_t>(range.raw_bits) & 15,
                  .symbol = symbol & 511,
                  .first = range.first & 32767};
    }
  }
  return table;
}

absl::StatusOr<std::unique_ptr<GapDecoder>> GapDecoder::Create(absl::string_view body,
                                                               uint32_t blocks) {
  std::unique_ptr<GapDecoder> decoder(new GapDecoder(body, blocks));
  GapCodeLengths lengths;
  DISTRO_RETURN_IF_ERROR(decoder->ReadTables(&lengths));
  DISTRO_RETURN_IF_ERROR(decoder->ReadSizes());
  decoder->counts_ = MakeTable(lengths.counts, RangeOf<kCountMantissa>);
  decoder->magnitudes_ = MakeTable(lengths.magnitudes, RangeOf<kMagnitudeMantissa>);
  for (int c = 1; c < kCountClasses; ++c) {
    decoder->entries_[c] = MakeTable(lengths.entries[c], [](uint32_t symbol) {
      BucketRange range = RangeOf<kGapMantissa>(symbol / kMagnitudeClasses);
      range.first |= (symbol % kMagnitudeClasses) << kClassShift;
      return range;
    });
  }
  return decoder;
}

absl::Status GapDecoder::ReadTables(GapCodeLengths* lengths) {
  DISTRO_ASSIGN_OR_RETURN(lengths->counts, ReadCodeLengths(&bits_, kCountSymbols, "counts"));
  for (int c = 1; c < kCountClasses; ++c) {
    DISTRO_ASSIGN_OR_RETURN(
        lengths->entries[c],
        ReadCodeLengths(&bits_, kEntrySymbols, absl::StrCat("entries of class ", c)));
  }
  DISTRO_ASSIGN_OR_RETURN(lengths->magnitudes,
                          ReadCodeLengths(&bits_, kMagnitudeSymbols, "magnitudes"));
  tables_ = std::string(body_.substr(0, (bits_.bit() + 7) / 8));
  return absl::OkStatus();
}

absl::Status GapDecoder::ReadSizes() {
  ByteReader reader(body_.substr(tables_.size()));
  const uint64_t groups = (uint64_t{blocks_} + kGroupBlocks - 1) / kGroupBlocks;
  DISTRO_ASSIGN_OR_RETURN(const absl::string_view sizes,
                          reader.ReadBytes(4 * groups, "group sizes"));
  uint64_t end = tables_.size() + sizes.size();
  bits_ = BitReader(body_, 8 * end);
  for (uint64_t group = 0; group < groups; ++group) {
    uint32_t size;
    std::memcpy(&size, sizes.data() + 4 * group, 4);
    end += size;
    group_end_.push_back(end);
  }
  if (end != body_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("groups end at byte ", end, " of a body of ", body_.size(), " bytes"));
  }
  return groups == 0 ? CheckTables() : absl::OkStatus();
}

absl::Status GapDecoder::NextBlock(GapBlock* block) {
  DISTRO_RETURN_IF_ERROR(ReadCount(&block->count));
  DISTRO_RETURN_IF_ERROR(ReadEntries(block));
  const bool ends_group = (next_ + 1) % kGroupBlocks == 0 || next_ + 1 == blocks_;
  if (ends_group) DISTRO_RETURN_IF_ERROR(EndGroup());
  ++next_;
  return next_ == blocks_ ? CheckTables() : absl::OkStatus();
}

absl::Status GapDecoder::ReadCount(uint32_t* count) {
  if (counts_.empty()) return Bad("no count has a code");
  const uint64_t window = bits_.Peek();
  const Entry entry = counts_[window % kCodeTableSize];
  *count = entry.first + Raw(window, entry.code_bits, entry.raw_bits);
  bits_.Skip(entry.code_bits + entry.raw_bits);
  ++model_.counts[entry.symbol];
  if (*count > kBlockElements)
    return Bad(absl::StrCat(*count, " entries, at most ", kBlockElements));
  if (*count > 0 && entries_[CountClass(*count)].empty()) {
    return Bad(absl::StrCat(*count, " entries, but class ", CountClass(*count), " has no code"));
  }
  return absl::OkStatus();
}

uint32_t GapDecoder::ReadMagnitude() {
  if (magnitudes_.empty()) return kMaxVotesPerBlock;
  const uint64_t window = bits_.Peek();
  const Entry entry = magnitudes_[window % kCodeTableSize];
  bits_.Skip(entry.code_bits + entry.raw_bits);
  ++model_.magnitudes[entry.symbol];
  return entry.first + Raw(window, entry.code_bits, entry.raw_bits);
}

absl::Status GapDecoder::ReadEntries(GapBlock* block) {
  const Entry* const table = entries_[CountClass(block->count)].data();
  auto& model = model_.entries[CountClass(block->count)];
  uint32_t next = 0;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < block->count; ++i) {
    const uint64_t window = bits_.Peek();
    const Entry entry = table[window % kCodeTableSize];
    bits_.Skip(entry.code_bits + 1 + entry.raw_bits);
    ++model[entry.symbol];
    const uint32_t first_gap = entry.first & (kBlockElements - 1);
    const uint32_t position = next + first_gap + Raw(window, entry.code_bits + 1, entry.raw_bits);
    uint32_t magnitude = (entry.first >> kClassShift) + 1;
    if (magnitude == kMagnitudeClasses) magnitude += ReadMagnitude();
    sum += magnitude;
    if (position >= kBlockElements)
      return Bad(absl::StrCat("position ", position, " is beyond 4095"));
    if (sum > kMaxVotesPerBlock) {
      return Bad(absl::StrCat("sum of |V| is at least ", sum, ", at most ", kMaxVotesPerBlock));
    }
    const bool negative = (window >> entry.code_bits) & 1;
    block->positions[i] = static_cast<uint16_t>(position);
    block->values[i] =
        static_cast<int16_t>(negative ? -static_cast<int>(magnitude) : static_cast<int>(magnitude));
    next = position + 1;
  }
  return absl::OkStatus();
}

absl::Status GapDecoder::EndGroup() {
  const uint64_t end = 8 * group_end_[next_ / kGroupBlocks];
  if (bits_.bit() > end || end - bits_.bit() >= 8) {
    return Bad(absl::StrCat("its group ends at bit ", bits_.bit(), ", its size says ", end));
  }
  if (bits_.Read(static_cast<int>(end - bits_.bit())) != 0)
    return Bad("padding after its group is not zero");
  return absl::OkStatus();
}

absl::Status GapDecoder::CheckTables() const {
  if (tables_ == EncodeTables(LengthsOf(model_))) return absl::OkStatus();
  return absl::InvalidArgumentError("the code lengths are not those of the decoded votes");
}

}  // namespace distro
