#include "common/codec/gap_decoder.h"

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

void Append(const GapBlock<VoteFormat>& block, Votes* votes) {
  votes->positions.insert(votes->positions.end(), block.positions.begin(),
                          block.positions.begin() + block.count);
  votes->values.insert(votes->values.end(), block.values.begin(),
                       block.values.begin() + block.count);
  votes->offsets.push_back(static_cast<uint32_t>(votes->positions.size()));
}

void Append(const GapBlock<DeltaFormat>& block, DeltaResult* deltas) {
  deltas->positions.insert(deltas->positions.end(), block.positions.begin(),
                           block.positions.begin() + block.count);
  deltas->signs.insert(deltas->signs.end(), block.signs.begin(), block.signs.begin() + block.count);
  deltas->levels.insert(deltas->levels.end(), block.levels.begin(),
                        block.levels.begin() + block.count);
  deltas->codes.push_back(block.code);
  deltas->offsets.push_back(static_cast<uint32_t>(deltas->positions.size()));
}

// Some groups of a body, decoded.
template <typename Format, typename Decoded>
struct Part {
  absl::Status status;
  Decoded decoded;
  GapModel<Format> model;
};

template <typename Format, typename Decoded>
Part<Format, Decoded> DecodePart(const std::shared_ptr<const GapBody<Format>>& body,
                                 uint32_t first_group, uint32_t end_group) {
  Part<Format, Decoded> part;
  GapDecoder<Format> decoder(body, first_group);
  GapBlock<Format> block;
  const uint64_t end = std::min<uint64_t>(body->blocks(), uint64_t{end_group} * kGroupBlocks);
  for (uint64_t i = uint64_t{first_group} * kGroupBlocks; i < end; ++i) {
    part.status = decoder.NextBlock(&block);
    if (!part.status.ok()) return part;
    Append(block, &part.decoded);
  }
  part.model = decoder.model();
  return part;
}

template <typename Format>
void AddModel(const GapModel<Format>& model, GapModel<Format>* sum) {
  model.ForEach([&]<typename Kind>() {
    auto& total = sum->template of<Kind>();
    for (size_t symbol = 0; symbol < total.size(); ++symbol)
      total[symbol] += model.template of<Kind>()[symbol];
  });
}

template <typename Format, typename Decoded>
absl::StatusOr<Decoded> Decode(absl::string_view bytes, uint32_t blocks, int threads) {
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<const GapBody<Format>> body,
                          GapBody<Format>::Open(bytes, blocks));
  const uint32_t part_groups = threads == 1 ? std::max(body->groups(), 1u) : kPartGroups;
  std::vector<Part<Format, Decoded>> parts((body->groups() + part_groups - 1) / part_groups);
  RunParallel(threads, static_cast<int64_t>(parts.size()), [&](int /*thread*/, int64_t i) {
    const uint32_t first = static_cast<uint32_t>(i) * part_groups;
    parts[i] =
        DecodePart<Format, Decoded>(body, first, std::min(body->groups(), first + part_groups));
  });
  GapModel<Format> model;
  uint64_t entries = 0;
  std::vector<Decoded> decoded;
  for (Part<Format, Decoded>& part : parts) {
    DISTRO_RETURN_IF_ERROR(part.status);
    AddModel<Format>(part.model, &model);
    entries += part.decoded.positions.size();
    decoded.push_back(std::move(part.decoded));
  }
  DISTRO_RETURN_IF_ERROR(body->CheckModel(model));
  if (entries > UINT32_MAX)
    return absl::InvalidArgumentError(absl::StrCat(entries, " entries, at most 2^32 - 1"));
  return Concatenate(std::move(decoded));
}

// The decoding table of an alphabet: what each kCodeTableSize windows mean.
template <typename Kind>
std::vector<GapTableEntry> MakeTable(absl::Span<const CodeLength> lengths) {
  std::vector<GapTableEntry> table;
  const std::vector<uint16_t> codes = PrefixCodes(lengths);
  for (uint32_t symbol = 0; symbol < lengths.size(); ++symbol) {
    if (lengths[symbol] == 0) continue;
    table.resize(kCodeTableSize);
    const uint32_t bits = CodeBits(lengths[symbol]);
    const BucketRange range = RangeOf<Kind::kMantissa>(symbol);
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

template <typename Format>
absl::StatusOr<std::shared_ptr<const GapBody<Format>>> GapBody<Format>::Open(
    absl::string_view bytes, uint32_t blocks) {
  const std::shared_ptr<GapBody> body(new GapBody(bytes, blocks));
  BitReader bits(bytes);
  DISTRO_ASSIGN_OR_RETURN(const GapCodeLengths<Format> lengths, ReadTables<Format>(&bits));
  body->encoded_tables_ = std::string(bytes.substr(0, (bits.bit() + 7) / 8));
  DISTRO_RETURN_IF_ERROR(body->ReadSizes());
  body->tables_.ForEach([&]<typename Kind>() {
    body->tables_.template of<Kind>() = MakeTable<Kind>(lengths.template of<Kind>());
  });
  return body;
}

template <typename Format>
absl::Status GapBody<Format>::ReadSizes() {
  ByteReader reader(body_.substr(encoded_tables_.size()));
  const uint64_t groups = (uint64_t{blocks_} + kGroupBlocks - 1) / kGroupBlocks;
  DISTRO_ASSIGN_OR_RETURN(const absl::string_view sizes,
                          reader.ReadBytes(4 * groups, "group sizes"));
  uint64_t end = encoded_tables_.size() + sizes.size();
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

template <typename Format>
absl::Status GapBody<Format>::CheckModel(const GapModel<Format>& model) const {
  if (encoded_tables_ == EncodeTables<Format>(LengthsOf<Format>(model))) return absl::OkStatus();
  return absl::InvalidArgumentError("the code lengths are not those of what was decoded");
}

template <typename Format>
GapDecoder<Format>::GapDecoder(std::shared_ptr<const GapBody<Format>> body, uint32_t first_group)
    : body_(std::move(body)),
      bits_(body_->body_, 8 * body_->group_begin_[first_group]),
      next_(first_group * kGroupBlocks),
      run_end_(next_) {}

template <typename Format>
absl::Status GapDecoder<Format>::Bad(absl::string_view what) const {
  return absl::InvalidArgumentError(absl::StrCat("block ", next_, ": ", what));
}

template <typename Format>
uint32_t GapDecoder<Format>::GroupEnd() const {
  return std::min(body_->blocks(), (next_ / kGroupBlocks + 1) * kGroupBlocks);
}

template <typename Format>
absl::Status GapDecoder<Format>::NextBlock(GapBlock<Format>* block) {
  if (next_ == run_end_) DISTRO_RETURN_IF_ERROR(ReadRun());
  block->count = count_;
  DISTRO_RETURN_IF_ERROR(ReadEntries(block));
  if (next_ + 1 == GroupEnd()) DISTRO_RETURN_IF_ERROR(EndGroup());
  ++next_;
  return absl::OkStatus();
}

template <typename Format>
template <typename Kind>
uint32_t GapDecoder<Format>::TakeNumber() {
  const uint64_t window = bits_.Peek();
  const GapTableEntry entry = body_->tables_.template of<Kind>()[window % kCodeTableSize];
  bits_.Skip(entry.code_bits + entry.raw_bits);
  ++model_.template of<Kind>()[entry.symbol];
  return entry.first + Raw(window, entry.code_bits, entry.raw_bits);
}

template <typename Format>
template <typename Kind>
absl::StatusOr<uint32_t> GapDecoder<Format>::ReadNumber() {
  if (body_->tables_.template of<Kind>().empty())
    return Bad(absl::StrCat("none of its ", Kind::kName, " has a code"));
  return TakeNumber<Kind>();
}

template <typename Format>
uint32_t GapDecoder<Format>::TakeGap(bool* negative) {
  const uint64_t window = bits_.Peek();
  const GapTableEntry entry = body_->tables_.template of<Gaps>()[window % kCodeTableSize];
  bits_.Skip(entry.code_bits + 1 + entry.raw_bits);
  ++model_.template of<Gaps>()[entry.symbol];
  *negative = (window >> entry.code_bits) & 1;
  return entry.first + Raw(window, entry.code_bits + 1, entry.raw_bits);
}

template <typename Format>
absl::Status GapDecoder<Format>::CheckPosition(uint32_t position) const {
  if (position < kBlockElements) return absl::OkStatus();
  return Bad(absl::StrCat("position ", position, " is beyond 4095"));
}

template <typename Format>
absl::Status GapDecoder<Format>::ReadRun() {
  const bool starts_group = next_ % kGroupBlocks == 0;
  DISTRO_ASSIGN_OR_RETURN(const uint32_t more, ReadNumber<Repeats>());
  DISTRO_ASSIGN_OR_RETURN(const uint32_t count, ReadNumber<Counts>());
  if (more >= GroupEnd() - next_) {
    return Bad(absl::StrCat("a run of ", more + 1, " blocks, ", GroupEnd() - next_,
                            " are left in the group"));
  }
  if (count > kBlockElements) return Bad(absl::StrCat(count, " entries, at most ", kBlockElements));
  if (!starts_group && count == count_)
    return Bad(absl::StrCat("two runs of ", count, " entries in sequence"));
  if (count > 0 && body_->tables_.template of<Gaps>().empty())
    return Bad("none of its gaps has a code");
  if (starts_group) state_ = {};
  count_ = count;
  run_end_ = next_ + more + 1;
  return absl::OkStatus();
}

template <typename Format>
inline absl::Status GapDecoder<Format>::ReadPlain() {
  using Plain = typename Format::Plain;
  if (state_.plain > 0 || state_.other) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(state_.plain, ReadNumber<Plain>());
  if (state_.plain > Plain::kLargest) {
    return Bad(
        absl::StrCat("a run of ", state_.plain, " ", Plain::kName, ", at most ", Plain::kLargest));
  }
  state_.other = state_.plain < Plain::kLargest;
  return absl::OkStatus();
}

template <typename Format>
inline absl::StatusOr<uint32_t> GapDecoder<Format>::ReadValue() {
  if (state_.plain > 0) {
    --state_.plain;
    return 0;
  }
  state_.other = false;
  DISTRO_ASSIGN_OR_RETURN(const uint32_t number, ReadNumber<typename Format::Other>());
  return number + 1;
}

template <>
absl::Status GapDecoder<VoteFormat>::ReadEntries(GapBlock<VoteFormat>* block) {
  uint32_t next = 0;
  uint64_t sum = 0;
  for (uint32_t i = 0; i < block->count; ++i) {
    DISTRO_RETURN_IF_ERROR(ReadPlain());
    bool negative;
    const uint32_t position = next + TakeGap(&negative);
    DISTRO_RETURN_IF_ERROR(CheckPosition(position));
    DISTRO_ASSIGN_OR_RETURN(const uint32_t more, ReadValue());
    const uint32_t magnitude = 1 + more;
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

template <>
absl::Status GapDecoder<DeltaFormat>::ReadEntries(GapBlock<DeltaFormat>* block) {
  block->code = 0;
  if (block->count == 0) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(const uint32_t difference, ReadNumber<Scales>());
  state_.code += UnZigZag(difference);
  if (state_.code < 0 || state_.code >= kScaleCodes)
    return Bad(absl::StrCat("scale code ", state_.code, " is outside 0..", kScaleCodes - 1));
  block->code = static_cast<uint8_t>(state_.code);
  uint32_t next = 0;
  for (uint32_t i = 0; i < block->count; ++i) {
    DISTRO_RETURN_IF_ERROR(ReadPlain());
    bool negative;
    const uint32_t position = next + TakeGap(&negative);
    DISTRO_RETURN_IF_ERROR(CheckPosition(position));
    DISTRO_ASSIGN_OR_RETURN(const uint32_t level, ReadValue());
    block->positions[i] = static_cast<uint16_t>(position);
    block->signs[i] = negative ? -1 : 1;
    block->levels[i] = static_cast<uint8_t>(level);
    next = position + 1;
  }
  return absl::OkStatus();
}

template <typename Format>
absl::Status GapDecoder<Format>::EndGroup() {
  if (state_.plain > 0) {
    return Bad(absl::StrCat(state_.plain, " ", Format::Plain::kName,
                            " are missing at the end of its group"));
  }
  const uint64_t end = 8 * body_->group_begin_[next_ / kGroupBlocks + 1];
  if (bits_.bit() > end || end - bits_.bit() >= 8) {
    return Bad(absl::StrCat("its group ends at bit ", bits_.bit(), ", its size says ", end));
  }
  if (bits_.Read(static_cast<int>(end - bits_.bit())) != 0)
    return Bad("padding after its group is not zero");
  return absl::OkStatus();
}

template class GapBody<VoteFormat>;
template class GapBody<DeltaFormat>;
template class GapDecoder<VoteFormat>;
template class GapDecoder<DeltaFormat>;

absl::StatusOr<Votes> DecodeGaps(absl::string_view body, uint32_t blocks, int threads) {
  return Decode<VoteFormat, Votes>(body, blocks, threads);
}

absl::StatusOr<DeltaResult> DecodeDeltaGaps(absl::string_view body, uint32_t blocks, int threads) {
  return Decode<DeltaFormat, DeltaResult>(body, blocks, threads);
}

}  // namespace distro
