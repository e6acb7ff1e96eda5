// Orthogonalizer (worker/optimizer/orthogonalizer.h) by Torch's matrix products, for ranks on a
// GPU. A matrix on the host (cpu_offload) is copied to the GPU and back.
#pragma once

#include <memory>

#include "worker/optimizer/orthogonalizer.h"
#include "worker/torch/torch.h"

namespace distro::worker {

// Matrices are in the memory of `memory`; products are computed on `compute` in `type` (bf16 on a
// GPU, as Muon's authors do).
std::unique_ptr<Orthogonalizer> MakeTorchOrthogonalizer(at::Device memory, at::Device compute,
                                                        at::ScalarType type);

}  // namespace distro::worker
