// The results of a committed round, decoded: what replicas apply and workers take feedback of.
// Plain data.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/layout/layout.h"
#include "common/round_log/committed_round.h"
#include "common/update/delta_update.h"
#include "common/update/votes.h"

namespace distro {

// Those of the round's method have one entry a segment; the others none.
struct DecodedRound {
  std::vector<Votes> votes;         // signs
  std::vector<DeltaResult> deltas;  // deltas
};

// `threads`, at least one, share the work. InvalidArgument: a payload does not decode. DataLoss: a
// result of deltas is not one that this round can have; it names the block. Names the first such
// segment.
absl::StatusOr<DecodedRound> DecodeRound(const Layout& layout, const CommittedRound& round,
                                         int threads);

}  // namespace distro
