// Floats that somebody else has, as a tensor.
#pragma once

#include "absl/types/span.h"
#include "worker/torch/torch.h"

namespace distro::worker {

// f32 [floats.size()], which borrows the floats; whoever writes to it has to be allowed to. They
// are in the memory of `device`.
inline at::Tensor FloatTensor(absl::Span<const float> floats, at::Device device) {
  return at::from_blob(const_cast<float*>(floats.data()), {static_cast<int64_t>(floats.size())},
                       at::TensorOptions().dtype(at::kFloat).device(device));
}

}  // namespace distro::worker
