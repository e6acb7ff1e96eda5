// Emulated GPUs (tests/kernels/emulated_cuda.h) as the devices of a node: they cover everything
// that a node on GPUs does, except Torch's own operations and NCCL. Enqueued work runs only at
// Finish, and device memory must be copied, except for Torch's tensors, which the kernels access
// directly.
#pragma once

#include <functional>
#include <memory>

#include "worker/node/node_devices.h"

namespace distro::worker::testing {

std::shared_ptr<const NodeDevices> MakeEmulatedDevices();

// The same, but every Finish of rank 1's device first calls `finish`, and its destructor calls
// `gone`.
std::shared_ptr<const NodeDevices> MakeWatchedDevices(std::function<void()> finish,
                                                      std::function<void()> gone);

}  // namespace distro::worker::testing
