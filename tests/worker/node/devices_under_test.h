// The devices that the tests of nodes with memory of their own run on: what is linked decides.
#pragma once

#include <memory>

#include "worker/node/node_devices.h"

namespace distro::worker::testing {

std::shared_ptr<const NodeDevices> DevicesUnderTest();

}  // namespace distro::worker::testing
