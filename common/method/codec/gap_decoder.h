// Reads bodies of the gap codec (gap_codec.h) block by block. All bytes are hostile.
//
//   auto body = GapBody<Format>::Open(bytes, blocks);           // tables and positions of groups
//   GapDecoder<Format> decoder(*body, 0);
//   GapBlock<Format> block;
//   for (...) DISTRO_RETURN_IF_ERROR(decoder.NextBlock(&block));
//   DISTRO_RETURN_IF_ERROR((*body)->CheckModel(decoder.model()));
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/method/codec/bit_stream.h"
#include "common/method/codec/gap_model.h"
#include "common/model/layout/matrix.h"

namespace distro {

// One block's entries.
template <typename Format>
using GapBlock = typename Format::Block;

// A decoder's state between the blocks of a group.
template <typename Format>
struct GapGroupState {
  uint32_t plain = 0;  // remaining plain entries of the run
  bool other = false;  // an entry that is not plain follows them
  typename Format::GroupState format = {};
};

// Meaning of the next kMaxCodeLength bits: symbol and number of code bits. Tables are small because
// a decoder looks into several in turn, beside the sums of a block.
struct GapTableEntry {
  uint16_t symbol : 12;
  uint16_t code_bits : 4;
};
template <typename Kind>
struct GapTable {
  static_assert(kSymbols<Kind> <= 1 << 12);
  std::vector<GapTableEntry> value;  // [kCodeTableSize], or empty when no symbol is used
};

// The same of gaps, of which a body has the most: where the bits also hold sign and raw bits, as
// for nearly all, the whole gap.
class GapEntry {
 public:
  GapEntry() = default;
  // A gap whose code, sign and raw bits are `bits` in all. Requires 1 <= bits <= kMaxCodeLength.
  static GapEntry Whole(uint32_t gap, bool negative, uint32_t symbol, uint32_t bits) {
    return GapEntry(gap | uint32_t{negative} << 12 | symbol << 13 | bits << 23);
  }
  static GapEntry CodeOnly(uint32_t symbol, uint32_t code_bits) {
    return GapEntry(code_bits | symbol << 13);
  }
  bool whole() const { return bits() != 0; }
  uint32_t symbol() const { return (packed_ >> 13) % (1u << 10); }
  // If whole:
  uint32_t gap_and_sign() const { return packed_ % (1u << 13); }  // gap + kBlockElements * negative
  uint32_t bits() const { return packed_ >> 23; }
  // Else:
  uint32_t code_bits() const { return packed_ % (1u << 12); }

 private:
  explicit GapEntry(uint32_t packed) : packed_(packed) {}
  uint32_t packed_ = 0;  // one load: the compiler reads a bit field three times
};
static_assert(kSymbols<Gaps> <= 1 << 10 && kBlockElements == 1 << 12);
template <>
struct GapTable<Gaps> {
  std::vector<GapEntry> value;
};
// Gaps that the bits of one Peek() hold.
inline constexpr uint32_t kGapsOfPeek = 3;
static_assert(kGapsOfPeek * (kMaxCodeLength + 1 + kRawBits<Gaps>) <= 57);

// Data for all groups of a body: code tables and positions of the groups. Immutable; borrows the
// body.
template <typename Format>
class GapBody {
 public:
  // Reads tables and sizes. InvalidArgument says what is wrong with them.
  static absl::StatusOr<std::shared_ptr<const GapBody>> Open(absl::string_view body,
                                                             uint32_t blocks);

  uint32_t blocks() const { return blocks_; }
  uint32_t groups() const { return static_cast<uint32_t>(group_begin_.size() - 1); }
  absl::string_view bytes() const { return body_; }
  // Where a group begins, in bits; of groups(): the end.
  uint64_t GroupBit(uint32_t group) const { return 8 * group_begin_[group]; }
  // Whether less than a byte of padding is left of the group, all zero: else one content would have
  // many encodings.
  bool EndsAt(uint32_t group, uint64_t bit) const;
  // Empty if no symbol is used.
  template <typename Kind>
  const auto& table() const {
    return tables_.template of<Kind>();
  }
  // Checks that the tables are those that an encoder derives from the symbols of all groups;
  // InvalidArgument otherwise.
  absl::Status CheckModel(const GapModel<Format>& model) const;

 private:
  template <typename>
  friend class GapDecoder;

  GapBody(absl::string_view body, uint32_t blocks) : body_(body), blocks_(blocks) {}
  absl::Status ReadSizes();
  void MakeTables(const GapCodeLengths<Format>& lengths);

  absl::string_view body_;
  uint32_t blocks_;
  std::string encoded_tables_;         // as read
  std::vector<uint64_t> group_begin_;  // [groups + 1] in bytes of the body; the last is its end
  typename Format::template Of<GapTable> tables_;
};

// Decodes groups of a body block by block, independent of the other groups. Not thread-safe;
// decoders of one body are independent.
template <typename Format>
class GapDecoder {
 public:
  // Starts at a group. Requires first_group <= body->groups().
  GapDecoder(std::shared_ptr<const GapBody<Format>> body, uint32_t first_group);

  // Reads the next block. InvalidArgument names the block and the fault; the last block of a group
  // also reports a wrong group size. Requires that a block is left, and no earlier error.
  absl::Status NextBlock(GapBlock<Format>* block);

  const GapBody<Format>& body() const { return *body_; }
  // The symbols of the blocks so far: those of all groups go to CheckModel.
  const GapModel<Format>& model() const { return model_; }

 private:
  absl::Status ReadRun();
  // The block's entries, `block->count` of them. Each format specialises it.
  absl::Status ReadEntries(GapBlock<Format>* block);
  // Before an entry: reads the run of plain entries that begins there, if none is pending.
  absl::Status ReadPlain();
  // After an entry's gap: returns 0 for a plain entry, else its number plus 1.
  absl::StatusOr<uint32_t> ReadValue();
  // Reads a number. InvalidArgument: the alphabet has no code.
  template <typename Kind>
  absl::StatusOr<uint32_t> ReadNumber();
  // Requires a code of the kind.
  template <typename Kind>
  uint32_t TakeNumber();
  // A gap and its sign, which stands between code and raw bits. Requires a code of gaps.
  uint32_t TakeGap(bool* negative);
  // The gaps of entries first .. end - 1 of a block, of which the entry before is at position
  // next - 1: calls put(entry, position, sign) for each, sign 1 for a negative one. Returns the
  // position behind the last one, which may be beyond the block: then put had such ones too.
  // Requires a code of gaps.
  template <typename Put>
  uint32_t TakeGaps(uint32_t first, uint32_t end, uint32_t next, Put put);
  // The first position beyond the block that TakeGaps has found, as an error.
  absl::Status BadPosition(BitReader at, uint32_t next);
  absl::Status CheckPosition(uint32_t position) const;
  absl::Status EndGroup();
  absl::Status Bad(absl::string_view what) const;
  uint32_t GroupEnd() const;  // first block after the group of block next_

  std::shared_ptr<const GapBody<Format>> body_;
  BitReader bits_;
  GapModel<Format> model_;
  uint32_t next_;
  uint32_t run_end_;    // first block after the current run
  uint32_t count_ = 0;  // entries of each block of the run
  GapGroupState<Format> state_;
};

}  // namespace distro
