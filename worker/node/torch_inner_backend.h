// InnerBackend (worker/optimizer/inner_backend.h) by Torch's operators, on whatever device they
// run: what a rank on a GPU steps with. Enqueued on the thread's current stream.
#pragma once

#include <memory>

#include "worker/optimizer/inner_backend.h"
#include "worker/torch/torch.h"

namespace distro::worker {

// Of arrays in the memory of `device`.
std::unique_ptr<InnerBackend> MakeTorchInnerBackend(at::Device device);

}  // namespace distro::worker
