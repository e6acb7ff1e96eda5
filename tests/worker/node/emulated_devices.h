// Emulated GPUs (tests/kernels/emulated_cuda.h) as the devices of a node: they cover everything
// that a node on GPUs does, except Torch's own operations and NCCL. Enqueued work runs only at
// Finish, and device memory must be copied, except for Torch's tensors, which the kernels access
// directly.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "worker/node/node_devices.h"

namespace distro::worker::testing {

std::shared_ptr<const NodeDevices> MakeEmulatedDevices();

// The same, but every Finish of rank 1's device first calls `finish`, and its destructor calls
// `gone`.
std::shared_ptr<const NodeDevices> MakeWatchedDevices(std::function<void()> finish,
                                                      std::function<void()> gone);

// The same, but adds the bytes of every AllocateHost to `host_bytes`.
std::shared_ptr<const NodeDevices> MakeCountedDevices(
    std::shared_ptr<std::atomic<int64_t>> host_bytes);

}  // namespace distro::worker::testing
