#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/codec/gap_codec.h"

namespace distro {
namespace {

uint32_t Raw(uint64_t window, uint32_t skip, uint32_t bits) {
  return static_cast<uint32_t>((window >> skip) & ((uint64_t{1} << bits) - 1));
}

// Groups that a thread takes at a time: 4096 blocks, some hundred KB of votes.
constexpr uint32_t kPartGroups = 16;

// Some groups of a body, decoded.
struct Part {
  absl::Status status;
  Votes votes;
  GapModel model;
};

Part DecodePart(const std::shared_ptr<const GapBody>& body, uint32_t first_group,
                uint32_t end_group) {
  Part part;
  GapDecoder decoder(body, first_group);
  GapBlock block;
  const uint64_t end = std::min<uint64_t>(body->blocks(), uint64_t{end_group} * kGroupBlocks);
  for (uint64_t i = uint64_t{first_group} * kGroupBlocks; i < end; ++i) {
    part.status = decoder.NextBlock(&block);
    if (!part.status.ok()) return part;
    Votes& votes = part.votes;
    votes.positions.insert(votes.positions.end(), block.positions.begin(),
                           block.positions.begin() + block.count);
    votes.values.insert(votes.values.end(), block.values.begin(),
                        block.values.begin() + block.count);
    votes.offsets.push_back(static_cast<uint32_t>(votes.positions.size()));
  }
  part.model = decoder.model();
  return part;
}

void AddModel(const GapModel& model, GapModel* sum) {
  sum->ForEach(
      [](absl::string_view, auto& total, const auto& counts) {
        for (size_t symbol = 0; symbol < total.size(); ++symbol) total[symbol] += counts[symbol];
      },
      model);
}

}  // namespace

// The decoding table of an alphabet: what each kCodeTableSize windows mean.
template <typename Lengths, typename Range>
GapBody::Table GapBody::MakeTable(const Lengths& lengths, Range range_of) {
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

absl::StatusOr<std::shared_ptr<const GapBody>> GapBody::Open(absl::string_view bytes,
                                                             uint32_t blocks) {
  const std::shared_ptr<GapBody> body(new GapBody(bytes, blocks));
  BitReader bits(bytes);
  DISTRO_ASSIGN_OR_RETURN(const GapCodeLengths lengths, ReadTables(&bits));
  body->tables_ = std::string(bytes.substr(0, (bits.bit() + 7) / 8));
  DISTRO_RETURN_IF_ERROR(body->ReadSizes());
  body->repeats_ = MakeTable(lengths.repeats, RangeOf<kRepeatMantissa>);
  body->counts_ = MakeTable(lengths.counts, RangeOf<kCountMantissa>);
  body->gaps_ = MakeTable(lengths.gaps, RangeOf<kGapMantissa>);
  body->ones_ = MakeTable(lengths.ones, RangeOf<kOnesMantissa>);
  body->magnitudes_ = MakeTable(lengths.magnitudes, RangeOf<kMagnitudeMantissa>);
  return body;
}

absl::Status GapBody::ReadSizes() {
  ByteReader reader(body_.substr(tables_.size()));
  const uint64_t groups = (uint64_t{blocks_} + kGroupBlocks - 1) / kGroupBlocks;
  DISTRO_ASSIGN_OR_RETURN(const absl::string_view sizes,
                          reader.ReadBytes(4 * groups, "group sizes"));
  uint64_t end = tables_.size() + sizes.size();
  group_begin_.push_back(end);
  for (uint64_t group = 0; group < groups; ++group) {
    uint32_t size;
    std::memcpy(&size, sizes.data() + 4 * group, 4);
    end += size;
    group_begin_.push_back(end);
  }
  if (end != body_.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("groups end at byte ", end, " of a body of ", body_.size(), " bytes"));
  }
  return groups == 0 ? CheckModel({}) : absl::OkStatus();
}

absl::Status GapBody::CheckModel(const GapModel& model) const {
  if (tables_ == EncodeTables(LengthsOf(model))) return absl::OkStatus();
  return absl::InvalidArgumentError("the code lengths are not those of the decoded votes");
}

absl::StatusOr<Votes> DecodeGaps(absl::string_view bytes, uint32_t blocks, int threads) {
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<const GapBody> body, GapBody::Open(bytes, blocks));
  const uint32_t part_groups = threads == 1 ? std::max(body->groups(), 1u) : kPartGroups;
  std::vector<Part> parts((body->groups() + part_groups - 1) / part_groups);
  RunParallel(threads, static_cast<int64_t>(parts.size()), [&](int /*thread*/, int64_t i) {
    const uint32_t first = static_cast<uint32_t>(i) * part_groups;
    parts[i] = DecodePart(body, first, std::min(body->groups(), first + part_groups));
  });
  GapModel model;
  uint64_t entries = 0;
  std::vector<Votes> votes;
  for (Part& part : parts) {
    DISTRO_RETURN_IF_ERROR(part.status);
    AddModel(part.model, &model);
    entries += part.votes.positions.size();
    votes.push_back(std::move(part.votes));
  }
  DISTRO_RETURN_IF_ERROR(body->CheckModel(model));
  if (entries > UINT32_MAX)
    return absl::InvalidArgumentError(absl::StrCat(entries, " votes, at most 2^32 - 1"));
  return Concatenate(std::move(votes));
}

GapDecoder::GapDecoder(std::shared_ptr<const GapBody> body, uint32_t first_group)
    : body_(std::move(body)),
      bits_(body_->body_, 8 * body_->group_begin_[first_group]),
      next_(first_group * kGroupBlocks),
      run_end_(next_) {}

absl::Status GapDecoder::Bad(absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat("block ", next_, ": ", what));
}

uint32_t GapDecoder::GroupEnd() const {
  return std::min(body_->blocks(), (next_ / kGroupBlocks + 1) * kGroupBlocks);
}

absl::Status GapDecoder::NextBlock(GapBlock* block) {
  if (next_ == run_end_) DISTRO_RETURN_IF_ERROR(ReadRun());
  block->count = count_;
  DISTRO_RETURN_IF_ERROR(ReadEntries(block));
  if (next_ + 1 == GroupEnd()) DISTRO_RETURN_IF_ERROR(EndGroup());
  ++next_;
  return absl::OkStatus();
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
                          ReadNumber(body_->repeats_, absl::MakeSpan(model_.repeats), "run"));
  DISTRO_ASSIGN_OR_RETURN(const uint32_t count,
                          ReadNumber(body_->counts_, absl::MakeSpan(model_.counts), "count"));
  if (more >= GroupEnd() - next_) {
    return Bad(absl::StrCat("a run of ", more + 1, " blocks, ", GroupEnd() - next_,
                            " are left in the group"));
  }
  if (count > kBlockElements) return Bad(absl::StrCat(count, " entries, at most ", kBlockElements));
  if (!starts_group && count == count_)
    return Bad(absl::StrCat("two runs of ", count, " entries in sequence"));
  if (count > 0 && body_->gaps_.empty()) return Bad("no gap has a code");
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
                          ReadNumber(body_->ones_, absl::MakeSpan(model_.ones), "run of ones"));
  if (ones_ > kMaxOnes) return Bad(absl::StrCat("a run of ", ones_, " ones, at most ", kMaxOnes));
  larger_ = ones_ < kMaxOnes;
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> GapDecoder::ReadMagnitude() {
  larger_ = false;
  DISTRO_ASSIGN_OR_RETURN(
      const uint32_t rest,
      ReadNumber(body_->magnitudes_, absl::MakeSpan(model_.magnitudes), "magnitude"));
  return rest + 2;
}

absl::Status GapDecoder::ReadEntries(GapBlock* block) {
  const Entry* const gaps = body_->gaps_.data();
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
  const uint64_t end = 8 * body_->group_begin_[next_ / kGroupBlocks + 1];
  if (bits_.bit() > end || end - bits_.bit() >= 8) {
    return Bad(absl::StrCat("its group ends at bit ", bits_.bit(), ", its size says ", end));
  }
  if (bits_.Read(static_cast<int>(end - bits_.bit())) != 0)
    return Bad("padding after its group is not zero");
  return absl::OkStatus();
}

}  // namespace distro
