// Workers that train on tokens of their own (docs/local_data.md): what they say at Join, and how
// their updates count by it. Pure functions, used by the aggregator and by the one inside a
// process.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "distro/v1/run.pb.h"

namespace distro {

// The most tokens that a worker may say it has.
inline constexpr uint64_t kMostOwnTokens = uint64_t{1} << 48;

// What JoinRequest.own_tokens says against the run's `data`. FailedPrecondition "other_data": a
// worker with tokens of its own and a run of shared data, or the other way round; the message says
// which flag to give or to leave out. InvalidArgument: more than kMostOwnTokens.
absl::Status CheckOwnTokens(const v1::RunConfig& config, uint64_t own_tokens);

// Weights of workers by the tokens that each says it has [workers], with weighting "data":
// 8 * own / m, rounded half up and kept within 1..15, m the lower median of those that are not 0.
// Nobody checks what a worker says: measured against the middle one, a lie makes it count less than
// twice as much as that one. 0 tokens, a worker that has not said any, count 1.
std::vector<int> DataWeights(absl::Span<const uint64_t> own_tokens);

}  // namespace distro
