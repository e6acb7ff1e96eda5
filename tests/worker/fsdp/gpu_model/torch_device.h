// Torch's device type for the model's GPUs: a program that has torch_device.cc has the devices
// ModelDevice(0), .... Operators of copying, filling and adding are enqueued on the current stream;
// all others copy to the host, compute there, and copy back.
#pragma once

#include "worker/torch/device_streams.h"

namespace distro::worker::testing {

inline at::Device ModelDevice(int rank) {
  return {at::kPrivateUse1, static_cast<c10::DeviceIndex>(rank)};
}

}  // namespace distro::worker::testing
