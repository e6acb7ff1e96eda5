// Floats of any device in a tensor, and out of it.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "worker/torch/torch.h"

namespace distro::worker {

// f32 [floats.size()], a view of the floats, which are in the memory of `device` and which `owner`,
// if there is one, keeps. Write to it only if the floats may be written.
inline at::Tensor FloatTensor(absl::Span<const float> floats, at::Device device,
                              std::shared_ptr<const void> owner = nullptr) {
  // Without the device Torch asks CUDA whose memory it is: of no floats it is nobody's.
  return at::from_blob(
      const_cast<float*>(floats.data()), {static_cast<int64_t>(floats.size())},
      [owner = std::move(owner)](void* /*data*/) {},
      at::TensorOptions().dtype(at::kFloat).device(device), /*target_device=*/device);
}

// A copy of the elements of an f32 tensor of any device, row-major.
inline std::vector<float> FloatsOf(const at::Tensor& tensor) {
  const at::Tensor here = tensor.to(at::kCPU).contiguous();
  const float* const floats = here.const_data_ptr<float>();
  return {floats, floats + here.numel()};
}

}  // namespace distro::worker
