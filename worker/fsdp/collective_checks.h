// The checks of arguments that every Communicator makes. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "worker/torch/torch.h"

namespace distro::worker {

// InvalidArgument names what breaks the contract of communicator.h: cuts, sizes, types, dimensions.
absl::Status CheckAllGather(int rank, int ranks, absl::Span<const int64_t> cuts,
                            const at::Tensor& shard, const at::Tensor& whole);
absl::Status CheckReduceScatter(int rank, int ranks, absl::Span<const int64_t> cuts,
                                const at::Tensor& part, at::ScalarType part_type,
                                const at::Tensor& sum);
absl::Status CheckAllToAll(int rank, int ranks, absl::Span<const int64_t> counts,
                           const at::Tensor& send, const at::Tensor& receive);

// Of counts that CheckAllToAll took, where the parts lie: [R + 1], in what `rank` sends by the rank
// that gets them, in what it receives by the rank that they come from.
std::vector<int64_t> SendCuts(int rank, int ranks, absl::Span<const int64_t> counts);
std::vector<int64_t> ReceiveCuts(int rank, int ranks, absl::Span<const int64_t> counts);

}  // namespace distro::worker
