// The decoded results of a committed round, for replicas to apply and for error feedback. Plain
// data.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/layout/layout.h"
#include "common/round_log/committed_round.h"
#include "common/update/delta_update.h"
#include "common/update/votes.h"

namespace distro {

// The vector of the round's method has one entry per segment; the other is empty.
struct DecodedRound {
  std::vector<Votes> votes;         // signs
  std::vector<DeltaResult> deltas;  // deltas
};

// Decodes on `threads` threads, at least one. InvalidArgument: a payload does not decode. DataLoss:
// a deltas result is impossible in this round; the message names the block. Both name the first
// such segment.
absl::StatusOr<DecodedRound> DecodeRound(const Layout& layout, const CommittedRound& round,
                                         int threads);

}  // namespace distro
