// Runs in which each worker trains on its own tokens (docs/local_data.md): what workers say at
// Join, and the weights of their updates. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "distro/v1/run.pb.h"

namespace distro {

// The largest number of tokens that a worker may report.
inline constexpr uint64_t kMostOwnTokens = uint64_t{1} << 48;

// Checks JoinRequest.own_tokens against the run's `data`. FailedPrecondition "other_data": a worker
// with its own tokens in a run of shared data, or the reverse; the message names the flag to give
// or to omit. InvalidArgument: more than kMostOwnTokens.
absl::Status CheckOwnTokens(const v1::RunConfig& config, uint64_t own_tokens);

// Weights of workers by the number of tokens that each reports [workers], for weighting "data": 8 *
// own / m, rounded half up and limited to 1..15. m is the lower median of the numbers that are not
// 0. The numbers are not verified, but the limit makes a false one count less than twice as much as
// the median. A worker that reports none (0) has weight 1.
std::vector<int> DataWeights(absl::Span<const uint64_t> own_tokens);

}  // namespace distro
