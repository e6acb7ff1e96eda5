// What every Communicator asks of its arguments. Pure.
#pragma once

#include <cstdint>

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

}  // namespace distro::worker
