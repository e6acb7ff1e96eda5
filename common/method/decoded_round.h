// The decoded result of a round, for replicas to apply and for error feedback. Plain data.
#pragma once

#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/shared_bytes.h"
#include "common/method/deltas/update.h"
#include "common/method/signs/votes.h"
#include "common/model/layout/layout.h"
#include "distro/v1/round.pb.h"

namespace distro {

// The results of all segments [segments], in the type of the round's method. Without segments: no
// round was decoded.
using DecodedRound = std::variant<std::vector<DeltaResult>, std::vector<Votes>>;

// Decodes the payloads [segments] of a checked header on `threads` threads, at least one.
// InvalidArgument: a payload does not decode. DataLoss: a deltas result is impossible in this
// round; the message names the block. Both name the first such segment.
absl::StatusOr<DecodedRound> DecodeRound(const Layout& layout, const v1::RoundHeader& header,
                                         absl::Span<const SharedBytes> payloads, int threads);

}  // namespace distro
