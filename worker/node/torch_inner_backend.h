// InnerBackend (worker/rules/deltas/inner_backend.h) by Torch's operators, for ranks on a GPU.
// Enqueued on the thread's current stream.
#pragma once

#include <memory>

#include "worker/rules/deltas/inner_backend.h"
#include "worker/torch/torch.h"

namespace distro::worker {

// For arrays in the memory of `device`.
std::unique_ptr<InnerBackend> MakeTorchInnerBackend(at::Device device);

}  // namespace distro::worker
