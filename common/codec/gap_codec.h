// The gap codec: votes (and updates with K > 8) of one segment near their entropy
// (docs/payload_format.md has the grammar).
//
//   body   = tables sizes group*
//   tables   the code lengths of the segment (gap_model.h), whole bytes
//   sizes    u32 [ceil(blocks / 256)]: the bytes of each group, so that groups decode in parallel
//   group    256 blocks (the last fewer) as bits: run*, then zero bits up to a whole byte
//   run      blocks - 1, count: as many blocks as possible with this number of entries; then their
//            entries
//   entry    [ones], gap, sign (1 = negative), [|V| - 2]
//
// Every number is a prefix code of its bucket, then the bucket's raw bits (the sign between the two
// of a gap). `ones` stands where none is pending: so many entries of the group, at most 1023, have
// |V| = 1; the entry after them, unless ones is 1023 or the group ends, has |V| >= 2 and says it.
//
// A generalised Golomb-Rice code: raw low bits under an optimal prefix code instead of a unary
// quotient, because the unary one is 3 to 4 % above the entropy of geometric gaps.
//
// The only choice an encoder has is the tables. The decoder counts the symbols it reads, derives
// the tables from the counts as the encoder does, and refuses others: hence encode(decode(b)) == b.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/codec/bit_stream.h"
#include "common/codec/gap_model.h"
#include "common/layout/matrix.h"
#include "common/update/votes.h"

namespace distro {

// Appends the body. Requires valid votes.
void EncodeGaps(const Votes& votes, std::string* body);

// The most bytes that the body of blocks with at most `max_entries` entries and sum of |V|
// `max_sum` takes.
uint64_t MaxGapBodyBytes(uint64_t blocks, uint64_t max_entries, uint64_t max_sum);

// One block's entries.
struct GapBlock {
  uint32_t count = 0;
  std::array<uint16_t, kBlockElements> positions;  // [count] ascending, below 4096
  // [count] not 0, sum of |values| <= kMaxVotesPerBlock.
  std::array<int16_t, kBlockElements> values;
};

// What holds for all groups of a body: its code tables and where the groups end. Immutable; borrows
// the body.
class GapBody {
 public:
  // Reads tables and sizes. InvalidArgument says what is wrong with them.
  static absl::StatusOr<std::shared_ptr<const GapBody>> Open(absl::string_view body,
                                                             uint32_t blocks);

  uint32_t blocks() const { return blocks_; }
  uint32_t groups() const { return static_cast<uint32_t>(group_begin_.size() - 1); }
  // Whether the tables are those that an encoder makes of the symbols of all groups;
  // InvalidArgument: they are not.
  absl::Status CheckModel(const GapModel& model) const;

 private:
  friend class GapDecoder;
  // What the next kMaxCodeLength bits mean: code bits, raw bits that follow, symbol, smallest
  // number of the bucket.
  struct Entry {
    uint8_t code_bits;
    uint8_t raw_bits;
    uint16_t symbol;
    uint32_t first;
  };
  using Table = std::vector<Entry>;  // [kCodeTableSize], or empty when no symbol is used

  GapBody(absl::string_view body, uint32_t blocks) : body_(body), blocks_(blocks) {}
  absl::Status ReadSizes();
  template <typename Lengths, typename Range>
  static Table MakeTable(const Lengths& lengths, Range range_of);

  absl::string_view body_;
  uint32_t blocks_;
  std::string tables_;                 // as read
  std::vector<uint64_t> group_begin_;  // [groups + 1] in bytes of the body; the last is its end
  Table repeats_;
  Table counts_;
  Table gaps_;
  Table ones_;
  Table magnitudes_;
};

// Decodes groups of a body block by block, whatever the other groups are. Not thread-safe; decoders
// of one body are independent.
class GapDecoder {
 public:
  // From a group on. Requires first_group <= body->groups().
  GapDecoder(std::shared_ptr<const GapBody> body, uint32_t first_group);

  // The next block. InvalidArgument names the block and what is wrong; at the end of a group also
  // that the group does not end there. Requires a block that is left, and no error before.
  absl::Status NextBlock(GapBlock* block);

  const GapBody& body() const { return *body_; }
  // The symbols of the blocks so far: those of all groups go to CheckModel.
  const GapModel& model() const { return model_; }

 private:
  using Entry = GapBody::Entry;
  using Table = GapBody::Table;

  absl::Status ReadRun();
  absl::Status ReadEntries(GapBlock* block);
  // |V| of the next entry.
  absl::StatusOr<uint32_t> ReadMagnitude();
  absl::Status ReadOnes();
  // A number of one of the small alphabets. InvalidArgument: it has no code.
  absl::StatusOr<uint32_t> ReadNumber(const Table& table, absl::Span<uint64_t> model,
                                      absl::string_view what);
  absl::Status EndGroup();
  absl::Status Bad(absl::string_view what) const;
  uint32_t GroupEnd() const;  // first block after the group of block next_

  std::shared_ptr<const GapBody> body_;
  BitReader bits_;
  GapModel model_;
  uint32_t next_;
  uint32_t run_end_;     // first block after the current run
  uint32_t count_ = 0;   // entries of each block of the run
  uint32_t ones_ = 0;    // entries with |V| = 1 that are still to come
  bool larger_ = false;  // an entry with |V| >= 2 comes after them
};

// All votes of a body, whose groups `threads` threads share; the result does not depend on how
// many. InvalidArgument as GapBody::Open, NextBlock and CheckModel, of the first block that is
// wrong. Requires threads >= 1.
absl::StatusOr<Votes> DecodeGaps(absl::string_view body, uint32_t blocks, int threads);

}  // namespace distro
