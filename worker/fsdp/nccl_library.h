// The NCCL that is linked. Only in builds with DISTRO_CUDA.
#pragma once

#include <memory>

#include "worker/fsdp/nccl_api.h"

namespace distro::worker {

// For devices of type at::kCUDA.
std::shared_ptr<Nccl> NcclLibrary();

}  // namespace distro::worker
