// The gap codec: encodes the votes or deltas of one segment near their entropy, and updates of the
// signs method with K > 8 (docs/payload_format.md has the grammar).
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
// Every number is the prefix code of its bucket, then the bucket's raw bits (a gap's sign is
// between the two). `ones` precedes an entry when no run is pending: this many entries of the
// group, at most 1023, have |V| = 1. The entry after them has |V| >= 2 and includes its magnitude,
// unless ones is 1023 or the group ends. `zeros` is the same for entries of level 0. In training
// nine of ten are, so that one bit per entry for them would be an eighth of a result
// (docs/decisions/0019).
//
// This is a generalised Golomb-Rice code: raw low bits with an optimal prefix code instead of a
// unary quotient, because the unary one is 3 to 4 % above the entropy of geometric gaps.
//
// The encoder's only choice is the tables. The decoder counts the symbols that it reads, derives
// the tables from the counts as the encoder does, and refuses others. Hence encode(decode(b)) == b.
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
// The same for deltas; an update is a result whose levels are 0 (ResultOf). Requires codes and
// levels in their ranges, and a code of 0 in blocks without entries.
void EncodeGaps(const DeltaResult& deltas, std::string* body);

// The most bytes that the body of blocks with at most `max_entries` entries and sum of |V|
// `max_sum` takes.
uint64_t MaxGapBodyBytes(uint64_t blocks, uint64_t max_entries, uint64_t max_sum);
uint64_t MaxDeltaBodyBytes(uint64_t blocks, uint64_t max_entries);

// Decodes all votes of a body on `threads` threads; the result does not depend on their number.
// InvalidArgument as GapBody::Open, NextBlock and CheckModel, for the first invalid block. Requires
// threads >= 1.
absl::StatusOr<Votes> DecodeGaps(absl::string_view body, uint32_t blocks, int threads);
absl::StatusOr<DeltaResult> DecodeDeltaGaps(absl::string_view body, uint32_t blocks, int threads);

}  // namespace distro
