// Linked into worker_gpu_test: the machine's GPUs.
#include "tests/worker/node/devices_under_test.h"

namespace distro::worker::testing {

std::shared_ptr<const NodeDevices> DevicesUnderTest() {
  return MakeDevices(DeviceKind::kCuda).value();
}

}  // namespace distro::worker::testing
