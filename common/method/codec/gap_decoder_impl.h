// Defines the templates of gap_decoder.h. Included only by plain_groups.h, and where a format
// specialises GapDecoder::ReadEntries and instantiates GapBody and GapDecoder.
#pragma once

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/bytes.h"
#include "common/base/status_macros.h"
#include "common/method/codec/gap_decoder.h"

namespace distro {
namespace internal {

inline uint32_t Raw(uint64_t window, uint32_t skip, uint32_t bits) {
  return static_cast<uint32_t>((window >> skip) & ((uint64_t{1} << bits) - 1));
}

// Of a pattern that begins with the code of a gap.
inline GapEntry GapEntryOf(uint32_t pattern, uint32_t symbol, uint32_t code_bits) {
  const BucketRange range = RangeOf<Gaps::kMantissa>(symbol);
  const auto raw_bits = static_cast<uint32_t>(range.raw_bits);
  const uint32_t bits = code_bits + 1 + raw_bits;
  if (bits > kMaxCodeLength) return GapEntry::CodeOnly(symbol, code_bits);
  return GapEntry::Whole(range.first + Raw(pattern, code_bits + 1, raw_bits),
                         (pattern >> code_bits & 1) != 0, symbol, bits);
}

// The decoding table of an alphabet: one entry for each of kCodeTableSize bit patterns.
template <typename Kind>
auto MakeTable(absl::Span<const CodeLength> lengths) {
  decltype(GapTable<Kind>::value) table;
  const std::vector<uint16_t> codes = PrefixCodes(lengths);
  for (uint32_t symbol = 0; symbol < lengths.size(); ++symbol) {
    if (lengths[symbol] == 0) continue;
    table.resize(kCodeTableSize);
    const auto bits = static_cast<uint32_t>(CodeBits(lengths[symbol]));
    // Every pattern whose low bits are the code, whatever follows it in the stream.
    for (uint32_t i = codes[symbol]; i < kCodeTableSize; i += 1u << bits) {
      if constexpr (std::is_same_v<Kind, Gaps>)
        table[i] = GapEntryOf(i, symbol, bits);
      else
        table[i] = {.symbol = static_cast<uint16_t>(symbol),
                    .code_bits = static_cast<uint16_t>(bits)};
    }
  }
  return table;
}

// Takes a number off the window, which has all its bits, and counts its symbol. Returns its bits.
template <typename Kind>
inline uint32_t TakeNumber(const std::vector<GapTableEntry>& table, uint64_t window,
                           uint64_t* symbols, uint32_t* number) {
  const GapTableEntry entry = table[window % kCodeTableSize];
  const BucketRange range = RangeOf<Kind::kMantissa>(entry.symbol);
  ++symbols[entry.symbol];
  *number = range.first + Raw(window, entry.code_bits, range.raw_bits);
  return entry.code_bits + static_cast<uint32_t>(range.raw_bits);
}

// The same for a gap and its sign, which stands between code and raw bits: `gap` becomes gap +
// kBlockElements * negative.
inline uint32_t TakeGap(const GapEntry* table, uint64_t window, uint64_t* symbols, uint32_t* gap) {
  const GapEntry entry = table[window % kCodeTableSize];
  ++symbols[entry.symbol()];
  if (entry.whole()) [[likely]] {
    *gap = entry.gap_and_sign();
    return entry.bits();
  }
  const BucketRange range = RangeOf<Gaps::kMantissa>(entry.symbol());
  const auto raw_bits = static_cast<uint32_t>(range.raw_bits);
  const uint32_t sign_at = entry.code_bits();
  *gap = range.first + Raw(window, sign_at + 1, raw_bits) +
         kBlockElements * static_cast<uint32_t>(window >> sign_at & 1);
  return sign_at + 1 + raw_bits;
}

}  // namespace internal

template <typename Format>
absl::StatusOr<std::shared_ptr<const GapBody<Format>>> GapBody<Format>::Open(
    absl::string_view bytes, uint32_t blocks) {
  const std::shared_ptr<GapBody> body(new GapBody(bytes, blocks));
  BitReader bits(bytes);
  DISTRO_ASSIGN_OR_RETURN(const GapCodeLengths<Format> lengths, ReadTables<Format>(&bits));
  body->encoded_tables_ = std::string(bytes.substr(0, (bits.bit() + 7) / 8));
  DISTRO_RETURN_IF_ERROR(body->ReadSizes());
  body->tables_.ForEach([&]<typename Kind>() {
    body->tables_.template of<Kind>() = internal::MakeTable<Kind>(lengths.template of<Kind>());
  });
  return body;
}

template <typename Format>
absl::Status GapBody<Format>::ReadSizes() {
  ByteReader reader(body_.substr(encoded_tables_.size()));
  const uint64_t groups = GroupsOf(blocks_);
  DISTRO_ASSIGN_OR_RETURN(const absl::string_view sizes,
                          reader.ReadBytes(4 * groups, "group sizes"));
  // At most 2^24 groups of less than 2^32 bytes each: the sum below cannot overflow.
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
  // Without groups there is no last block at which the caller would compare the tables.
  return groups == 0 ? CheckModel({}) : absl::OkStatus();
}

template <typename Format>
bool GapBody<Format>::EndsAt(uint32_t group, uint64_t bit) const {
  const uint64_t end = GroupBit(group + 1);
  if (bit > end || end - bit >= 8) return false;
  return internal::Raw(BitReader::PeekAt(body_, bit), 0, static_cast<uint32_t>(end - bit)) == 0;
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
  // A window has at least 57 bits, and a code with its raw bits fewer.
  uint32_t number;
  bits_.Skip(internal::TakeNumber<Kind>(body_->template table<Kind>(), bits_.Peek(),
                                        model_.template of<Kind>().data(), &number));
  return number;
}

template <typename Format>
template <typename Kind>
absl::StatusOr<uint32_t> GapDecoder<Format>::ReadNumber() {
  if (body_->template table<Kind>().empty())
    return Bad(absl::StrCat("none of its ", Kind::kName, " has a code"));
  return TakeNumber<Kind>();
}

template <typename Format>
template <typename Put>
inline uint32_t GapDecoder<Format>::TakeGaps(uint32_t first, uint32_t end, uint32_t next, Put put) {
  const GapEntry* const table = body_->template table<Gaps>().data();
  uint64_t* const symbols = model_.template of<Gaps>().data();
  BitReader bits = bits_;  // a copy, which stays in registers
  uint64_t window = 0;
  const auto take = [&](uint32_t entry) {
    uint32_t gap;
    const uint32_t taken = internal::TakeGap(table, window, symbols, &gap);
    window >>= taken;
    const uint32_t position = next + gap % kBlockElements;
    put(entry, position, gap / kBlockElements);
    next = position + 1;
    return taken;
  };
  uint32_t entry = first;
  for (; end - entry >= kGapsOfPeek; entry += kGapsOfPeek) {
    window = bits.Peek();
    uint32_t used = 0;
    for (uint32_t i = 0; i < kGapsOfPeek; ++i) used += take(entry + i);
    bits.Skip(used);
  }
  window = bits.Peek();
  uint32_t used = 0;
  for (; entry < end; ++entry) used += take(entry);
  bits.Skip(used);
  bits_ = bits;
  return next;
}

template <typename Format>
uint32_t GapDecoder<Format>::TakeGap(bool* negative) {
  uint32_t gap = 0;
  TakeGaps(0, 1, 0, [&](uint32_t /*entry*/, uint32_t position, uint32_t sign) {
    gap = position;
    *negative = sign != 0;
  });
  return gap;
}

template <typename Format>
absl::Status GapDecoder<Format>::BadPosition(BitReader at, uint32_t next) {
  bits_ = at;
  bool negative;
  while (true) {
    const uint32_t position = next + TakeGap(&negative);
    DISTRO_RETURN_IF_ERROR(CheckPosition(position));
    next = position + 1;
  }
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
  // The encoder makes one run of these: a payload has one valid encoding only.
  if (!starts_group && count == count_)
    return Bad(absl::StrCat("two runs of ", count, " entries in sequence"));
  // Here, once per run, so that TakeGap need not check for each entry.
  if (count > 0 && body_->template table<Gaps>().empty()) return Bad("none of its gaps has a code");
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

template <typename Format>
absl::Status GapDecoder<Format>::EndGroup() {
  if (state_.plain > 0) {
    return Bad(absl::StrCat(state_.plain, " ", Format::Plain::kName,
                            " are missing at the end of its group"));
  }
  const uint32_t group = next_ / kGroupBlocks;
  const uint64_t end = body_->GroupBit(group + 1);
  if (body_->EndsAt(group, bits_.bit())) {
    bits_.Skip(end - bits_.bit());
    return absl::OkStatus();
  }
  if (bits_.bit() > end || end - bits_.bit() >= 8)
    return Bad(absl::StrCat("its group ends at bit ", bits_.bit(), ", its size says ", end));
  return Bad("padding after its group is not zero");
}

}  // namespace distro
