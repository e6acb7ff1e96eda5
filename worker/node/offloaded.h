// Allocates what cpu_offload keeps on the host.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "kernels/device.h"
#include "worker/fsdp/rank_buffer.h"
#include "worker/plan/memory_counter.h"

namespace distro::worker {

// f32 [elements] in host memory that the device can access while it computes, of exactly their
// size: Torch's allocator of such memory rounds up to a power of two. The buffer's tensors share
// the device, and return the memory to it. ResourceExhausted: no memory; names category and bytes.
absl::StatusOr<RankBuffer> MakeOffloadedBuffer(const std::shared_ptr<Device>& device,
                                               MemoryCategory category, int64_t elements,
                                               MemoryCounter* counter);

}  // namespace distro::worker
