// GPUs whose kernels run on the CPU (tests/kernels/emulated_cuda.h), as the devices of a node:
// everything that a node on GPUs does beside Torch's own work and NCCL. What is enqueued happens at
// Finish only, and memory of the device has to be copied, except for Torch's tensors, which are
// where the kernels find them.
#pragma once

#include <functional>
#include <memory>

#include "worker/node/node_devices.h"

namespace distro::worker::testing {

std::shared_ptr<const NodeDevices> MakeEmulatedDevices();

// The same, but every Finish of rank 1's device calls `finish` first; when the device is gone,
// `gone`.
std::shared_ptr<const NodeDevices> MakeWatchedDevices(std::function<void()> finish,
                                                      std::function<void()> gone);

}  // namespace distro::worker::testing
