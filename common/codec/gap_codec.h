// The gap codec: votes (and updates of signs with K > 8), and deltas, of one segment near their
// entropy (docs/payload_format.md has the grammar).
//
//   body   = tables sizes group*
//   tables   the code lengths of the segment (gap_model.h), whole bytes
//   sizes    u32 [ceil(blocks / 256)]: the bytes of each group, so that groups decode in parallel
//   group    256 blocks (the last fewer) as bits: run*, then zero bits up to a whole byte
//   run      blocks - 1, count: as many blocks as possible with this number of entries; then their
//            entries, those of deltas after their block's scale
//   entry    of votes: [ones], gap, sign (1 = negative), [|V| - 2]
//            of deltas: [zeros], gap, sign, [level - 1]
//   scale    zigzag difference of the code to that of the block with entries before, 0 at the
//            start of a group
//
// Every number is a prefix code of its bucket, then the bucket's raw bits (the sign between the two
// of a gap). `ones` stands where none is pending: so many entries of the group, at most 1023, have
// |V| = 1; the entry after them, unless ones is 1023 or the group ends, has |V| >= 2 and says it.
// `zeros` is the same of entries of level 0: in training nine of ten are, so that a code of a bit
// an entry would be an eighth of a result (docs/decisions/0019).
//
// A generalised Golomb-Rice code: raw low bits under an optimal prefix code instead of a unary
// quotient, because the unary one is 3 to 4 % above the entropy of geometric gaps.
//
// The only choice an encoder has is the tables. The decoder counts the symbols it reads, derives
// the tables from the counts as the encoder does, and refuses others: hence encode(decode(b)) == b.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/update/delta_update.h"
#include "common/update/votes.h"

namespace distro {

// Appends the body. Requires valid votes.
void EncodeGaps(const Votes& votes, std::string* body);
// The same of deltas; an update is a result whose levels are 0 (ResultOf). Requires codes and
// levels in their ranges, and a code of 0 in blocks without entries.
void EncodeGaps(const DeltaResult& deltas, std::string* body);

// The most bytes that the body of blocks with at most `max_entries` entries and sum of |V|
// `max_sum` takes.
uint64_t MaxGapBodyBytes(uint64_t blocks, uint64_t max_entries, uint64_t max_sum);
uint64_t MaxDeltaBodyBytes(uint64_t blocks, uint64_t max_entries);

// All votes of a body, whose groups `threads` threads share; the result does not depend on how
// many. InvalidArgument as GapBody::Open, NextBlock and CheckModel, of the first block that is
// wrong. Requires threads >= 1.
absl::StatusOr<Votes> DecodeGaps(absl::string_view body, uint32_t blocks, int threads);
absl::StatusOr<DeltaResult> DecodeDeltaGaps(absl::string_view body, uint32_t blocks, int threads);

}  // namespace distro
