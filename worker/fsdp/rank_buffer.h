// Long-lived memory of one rank: parameters, gradients, momentum. f32, initially zero, 64-byte
// aligned, counted in a MemoryCounter. Movable.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/plan/memory_counter.h"
#include "worker/torch/torch.h"

namespace distro::worker {

class RankBuffer {
 public:
  // f32 [elements] on `device`; the counter outlives the buffer. ResourceExhausted: no memory;
  // names category and bytes.
  static absl::StatusOr<RankBuffer> Create(MemoryCategory category, int64_t elements,
                                           at::Device device, MemoryCounter* counter);
  // Of the host's memory, which `owner` keeps; sets it to zero.
  static RankBuffer Of(MemoryCategory category, absl::Span<float> floats,
                       std::shared_ptr<const void> owner, MemoryCounter* counter);
  RankBuffer() = default;  // empty
  ~RankBuffer();
  RankBuffer(RankBuffer&& other) noexcept { *this = std::move(other); }
  RankBuffer& operator=(RankBuffer&& other) noexcept;

  const at::Tensor& tensor() const { return tensor_; }
  int64_t elements() const { return tensor_.defined() ? tensor_.numel() : 0; }
  // The elements, for kernels. Requires memory of the host, or callers that only pass the pointer
  // on to the device.
  absl::Span<float> floats();
  absl::Span<const float> floats() const;

 private:
  RankBuffer(MemoryCategory category, at::Tensor tensor, MemoryCounter* counter);

  at::Tensor tensor_;
  MemoryCategory category_ = MemoryCategory::kWorkspace;
  MemoryCounter* counter_ = nullptr;
};

}  // namespace distro::worker
