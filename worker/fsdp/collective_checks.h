// Checks the arguments of collective operations, for every Communicator. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/torch/torch.h"

namespace distro::worker {

// InvalidArgument names the violated rule of communicator.h: cuts, sizes, types, dimensions.
absl::Status CheckAllGather(int rank, int ranks, absl::Span<const int64_t> cuts,
                            const at::Tensor& shard, const at::Tensor& whole);
absl::Status CheckReduceScatter(int rank, int ranks, absl::Span<const int64_t> cuts,
                                const at::Tensor& part, at::ScalarType part_type,
                                const at::Tensor& sum);
absl::Status CheckAllToAll(int rank, int ranks, absl::Span<const int64_t> counts,
                           const at::Tensor& send, const at::Tensor& receive);

// Offsets [R + 1] of the parts for counts accepted by CheckAllToAll: SendCuts of what `rank` sends,
// by receiving rank; ReceiveCuts those of the received bytes, by sending rank.
std::vector<int64_t> SendCuts(int rank, int ranks, absl::Span<const int64_t> counts);
std::vector<int64_t> ReceiveCuts(int rank, int ranks, absl::Span<const int64_t> counts);

}  // namespace distro::worker
