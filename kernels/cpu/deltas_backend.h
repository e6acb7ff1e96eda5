// DeltaBackend on the CPU: deltas_compress.h, and deltas_transform.h with the fastest kernels that
// this CPU runs.
#pragma once

#include <memory>

#include "kernels/deltas_backend.h"

namespace distro {

std::unique_ptr<DeltaBackend> MakeCpuDeltaBackend();

}  // namespace distro
