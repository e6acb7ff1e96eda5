// Wraps borrowed floats in a tensor.
#pragma once

#include "absl/types/span.h"
#include "worker/torch/torch.h"

namespace distro::worker {

// f32 [floats.size()], a view of the floats, which are in the memory of `device`. Write to it only
// if the floats may be written.
inline at::Tensor FloatTensor(absl::Span<const float> floats, at::Device device) {
  return at::from_blob(const_cast<float*>(floats.data()), {static_cast<int64_t>(floats.size())},
                       at::TensorOptions().dtype(at::kFloat).device(device));
}

}  // namespace distro::worker
