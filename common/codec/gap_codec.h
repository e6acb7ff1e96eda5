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
// Every number is a prefix code of its bucket, then the bucket's raw bits (the sign between the two of
// a gap). `ones` stands where none is pending: so many entries of the group, at most 1023, have |V| = 1; the
// entry after them, unless ones is 1023 or the group ends, has |V| >= 2 and says it.
//
// A generalised Golomb-Rice code: raw low bits under an optimal prefix code instead of a unary quotient, because
// the unary one is 3 to 4 % above the entropy of geometric gaps.
//
// The only choice an encoder has is the tables. The decoder counts the symbols it reads, derives the tables from the
// counts as the encoder does, and refuses others: hence encode(decode(b)) == b.
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

// The most bytes that the body of blocks with at most `max_entries` entries and sum of |V| `max_sum` takes.
uint64_t MaxGapBodyBytes(uint64_t blocks, uint64_t max_entries, uint64_t max_sum);

// One block's entries.
struct GapBlock {
  uint32_t count = 0;
  std::array<uint16_t, kBlockElements> positions;  // [count] ascending, below 4096
  std::array<int16_t, kBlockElements>
      values;  // [count] not 0, sum of |values| <= kMaxVotesPerBlock
};

// Decodes a body block by block. Not thread-safe; borrows the body.
class GapDecoder {
 public:
  // Reads tables and sizes. InvalidArgument says what is wrong with them.
  static absl::StatusOr<std::unique_ptr<GapDecoder>> Create(absl::string_view body,
                                                            uint32_t blocks);

  // The next block. InvalidArgument names the block and what is wrong; at the end of a group also that the group does
  // not end there, after the last block also that the tables are not those of an encoder. Requires fewer than `blocks` calls
  // before, and none after an error.
  absl::Status NextBlock(GapBlock* block);

 private:
  // What the next kMaxCodeLength bits mean: code bits, raw bits that follow, symbol, smallest
  // number of the bucket.
  struct Entry {
    uint8_t code_bits;
    uint8_t raw_bits;
    uint16_t symbol;
    uint32_t first;
  };
  using Table = std::vector<Entry>;  // [kCodeTableSize], or empty when no symbol is used

  GapDecoder(absl::string_view body, uint32_t blocks) : body_(body), blocks_(blocks), bits_(body) {}
  absl::Status ReadSizes();
  absl::Status ReadRun();
  absl::Status ReadEntries(GapBlock* block);
  // |V| of the next entry.
  absl::StatusOr<uint32_t> ReadMagnitude();
  absl::Status ReadOnes();
  // A number of one of the small alphabets. InvalidArgument: it has no code.
  absl::StatusOr<uint32_t> ReadNumber(const Table& table, absl::Span<uint64_t> model,
                                      absl::string_view what);
  absl::Status EndGroup();
  absl::Status CheckTables() const;
  absl::Status Bad(absl::string_view what) const;
  uint32_t GroupEnd() const;  // first block after the group of block next_

  // Constant after Create().
  absl::string_view body_;
  uint32_t blocks_;
  std::string tables_;               // as read
  std::vector<uint64_t> group_end_;  // in bytes of the body
  Table repeats_;
  Table counts_;
  Table gaps_;
  Table ones_table_;
  Table magnitudes_;

  BitReader bits_;
  GapModel model_;  // of what was read so far
  uint32_t next_ = 0;
  uint32_t run_end_ = 0;  // first block after the current run
  uint32_t count_ = 0;    // entries of each block of the run
  uint32_t ones_ = 0;     // entries with |V| = 1 that are still to come
  bool larger_ = false;   // an entry with |V| >= 2 comes after them
};

}  // namespace distro
