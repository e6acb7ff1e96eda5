// Orthogonalizer (worker/rules/deltas/orthogonalizer.h) by Torch's products of batches, for ranks
// on a GPU. Matrices on the host (cpu_offload) are copied to the GPU and back.
#pragma once

#include <memory>

#include "worker/rules/deltas/orthogonalizer.h"
#include "worker/torch/torch.h"

namespace distro::worker {

// Matrices are in the memory of `memory`; products are computed on `compute` in `type` (bf16 on a
// GPU, as Muon's authors do).
std::unique_ptr<Orthogonalizer> MakeTorchOrthogonalizer(at::Device memory, at::Device compute,
                                                        at::ScalarType type);

}  // namespace distro::worker
