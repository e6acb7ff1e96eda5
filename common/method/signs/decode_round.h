#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/method/base/decode_segments.h"
#include "common/method/signs/votes.h"

namespace distro {

// The results of a round of signs [segments], on `threads` threads, at least one. InvalidArgument:
// a payload does not decode.
absl::StatusOr<std::vector<Votes>> DecodeSignRound(const RoundPayloads& round, int threads);

}  // namespace distro
