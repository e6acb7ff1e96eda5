// Linked without DISTRO_CUDA.
#include "worker/node/node_devices.h"

namespace distro::worker {

absl::StatusOr<std::shared_ptr<const NodeDevices>> MakeDevices(DeviceKind kind) {
  if (kind == DeviceKind::kCpu) return MakeCpuDevices();
  return absl::InvalidArgumentError(
      "--device: cuda: this distro-worker was built for CPUs only; GPUs need one that was built "
      "with preset cuda, or packed by scripts/package_programs --cuda");
}

}  // namespace distro::worker
