#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/method/base/decode_segments.h"
#include "common/method/deltas/update.h"

namespace distro {

// The results of a round of deltas [segments], on `threads` threads, at least one. InvalidArgument:
// a payload does not decode. DataLoss: a result is impossible in this round; the message names the
// block.
absl::StatusOr<std::vector<DeltaResult>> DecodeDeltaRound(const RoundPayloads& round, int threads);

}  // namespace distro
