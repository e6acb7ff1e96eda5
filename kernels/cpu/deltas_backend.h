// DeltaBackend on the CPU: deltas.h, and delta_transform.h with the fastest kernels this CPU runs.
#pragma once

#include <memory>

#include "kernels/deltas_backend.h"

namespace distro {

std::unique_ptr<DeltaBackend> MakeCpuDeltaBackend();

}  // namespace distro
