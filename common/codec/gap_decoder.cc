#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/status_macros.h"
#include "common/codec/gap_codec.h"

namespace distro {
namespace {

uint32_t Raw(uint64_t window, uint32_t skip, uint32_t bits) {
  return static_cast<uint32_t>((window >> skip) & ((uint64_t{1} << bits) - 1));
}

// The decoding table of an alphabet: what each kCodeTableSize windows mean.
template <typename Table, typename Lengths, typename Range>
Table MakeTable(const Lengths& lengths, Range range_of) {
  Table table;
  const std::vector<uint16_t> codes = PrefixCodes(lengths);
  for (uint32_t symbol = 0; symbol < lengths.size(); ++symbol) {
    if (lengths[symbol] == 0) continue;
    table.resize(kCodeTableSize);
    const uint32_t bits = CodeBits(lengths[symbol]);
    const BucketRange range = range_of(symbol);
    for (uint32_t i = codes[symbol]; i < kCodeTableSize; i += 1u << bits) {
      table[i] = {.code_bits = static_cast<uint8_t>(bits),
                  .raw_bits = static_cast<uint8_t>(range.raw_bits),
                  .symbol = static_cast<uint16_t>(symbol),
                  .first = range.first};
    }
  }
  return table;
}

}  // namespace

absl::Status GapDecoder::Bad(absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat("block ", next_, ": ", what));
}

absl::StatusOr<std::unique_ptr<GapDecoder>> GapDecoder::Create(absl::string_view body,
                                                               uint32_t blocks) {
  std::unique_ptr<GapDecoder> decoder(new GapDecoder(body, blocks));
  DISTRO_ASSIGN_OR_RETURN(const GapCodeLengths lengths, ReadTables(&decoder->bits_));
  decoder->tables_ = std::string(body.substr(0, (decoder->bits_.bit() + 7) / 8));
  DISTRO_RETURN_IF_ERROR(decoder->ReadSizes());
  decoder->repeats_ = MakeTable<Table>(lengths.repeats, RangeOf<kRepeatMantissa>);
  decoder->counts_ = MakeTable<Table>(lengths.counts, RangeOf<kCountMantissa>);
  decoder->gaps_ = MakeTable<Table>(lengths.gaps, RangeOf<kGapMantissa>);
  decoder->ones_table_ = MakeTable<Table>(lengths.ones, RangeOf<kOnesMantissa>);
  decoder->magnitudes_ = MakeTable<Table>(lengths.magnitudes, RangeOf<kMagnitudeMantissa>);
  return decoder;
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

uint32_t GapDecoder::GroupEnd() const {
  return std::min(blocks_, (next_ / kGroupBlocks + 1) * kGroupBlocks);
}

absl::Status GapDecoder::NextBlock(GapBlock* block) {
  if (next_ == run_end_) DISTRO_RETURN_IF_ERROR(ReadRun());
  block->count = count_;
  DISTRO_RETURN_IF_ERROR(ReadEntries(block));
  if (next_ + 1 == GroupEnd()) DISTRO_RETURN_IF_ERROR(EndGroup());
  ++next_;
  return next_ == blocks_ ? CheckTables() : absl::OkStatus();
}

absl::StatusOr<uint32_t> GapDecoder::ReadNumber(const Table& table, absl::Span<uint64_t> model,
                                                absl::string_view what) {
  if (table.empty()) return Bad(absl::StrCat("no ", what, " has a code"));
  const uint64_t window = bits_.Peek();
  const Entry entry = table[window % kCodeTableSize];
  bits_.Skip(entry.code_bits + entry.raw_bits);
  ++model[entry.symbol];
  return entry.first + Raw(window, entry.code_bits, entry.raw_bits);
}

absl::Status GapDecoder::ReadRun() {
  const bool starts_group = next_ % kGroupBlocks == 0;
  DISTRO_ASSIGN_OR_RETURN(const uint32_t more,
                          ReadNumber(repeats_, absl::MakeSpan(model_.repeats), "run"));
  DISTRO_ASSIGN_OR_RETURN(const uint32_t count,
                          ReadNumber(counts_, absl::MakeSpan(model_.counts), "count"));
  if (more >= GroupEnd() - next_) {
    return Bad(absl::StrCat("a run of ", more + 1, " blocks, ", GroupEnd() - next_,
                            " are left in the group"));
  }
  if (count > kBlockElements) return Bad(absl::StrCat(count, " entries, at most ", kBlockElements));
  if (!starts_group && count == count_)
    return Bad(absl::StrCat("two runs of ", count, " entries in sequence"));
  if (count > 0 && gaps_.empty()) return Bad("no gap has a code");
  if (starts_group) {
    ones_ = 0;
    larger_ = false;
  }
  count_ = count;
  run_end_ = next_ + more + 1;
  return absl::OkStatus();
}

absl::Status GapDecoder::ReadOnes() {
  DISTRO_ASSIGN_OR_RETURN(ones_,
                          ReadNumber(ones_table_, absl::MakeSpan(model_.ones), "run of ones"));
  if (ones_ > kMaxOnes) return Bad(absl::StrCat("a run of ", ones_, " ones, at most ", kMaxOnes));
  larger_ = ones_ < kMaxOnes;
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> GapDecoder::ReadMagnitude() {
  larger_ = false;
  DISTRO_ASSIGN_OR_RETURN(const uint32_t rest,
                          ReadNumber(magnitudes_, absl::MakeSpan(model_.magnitudes), "magnitude"));
  return rest + 2;
}

absl::Status GapDecoder::ReadEntries(GapBlock* block) {
  const Entry* const gaps = gaps_.data();
  uint32_t next = 0;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < block->count; ++i) {
    if (ones_ == 0 && !larger_) DISTRO_RETURN_IF_ERROR(ReadOnes());
    const uint64_t window = bits_.Peek();
    const Entry entry = gaps[window % kCodeTableSize];
    bits_.Skip(entry.code_bits + 1 + entry.raw_bits);
    ++model_.gaps[entry.symbol];
    const bool negative = (window >> entry.code_bits) & 1;
    const uint32_t position = next + entry.first + Raw(window, entry.code_bits + 1, entry.raw_bits);
    if (position >= kBlockElements)
      return Bad(absl::StrCat("position ", position, " is beyond 4095"));
    uint32_t magnitude = 1;
    if (ones_ > 0) {
      --ones_;
    } else {
      DISTRO_ASSIGN_OR_RETURN(magnitude, ReadMagnitude());
    }
    sum += magnitude;
    if (sum > kMaxVotesPerBlock) {
      return Bad(absl::StrCat("sum of |V| is at least ", sum, ", at most ", kMaxVotesPerBlock));
    }
    block->positions[i] = static_cast<uint16_t>(position);
    block->values[i] =
        static_cast<int16_t>(negative ? -static_cast<int>(magnitude) : static_cast<int>(magnitude));
    next = position + 1;
  }
  return absl::OkStatus();
}

absl::Status GapDecoder::EndGroup() {
  if (ones_ > 0) return Bad(absl::StrCat(ones_, " ones are missing at the end of its group"));
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
