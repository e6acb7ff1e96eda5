// The devices for the tests of nodes with device memory; the linked implementation selects them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/worker/node/node_fixture.h"
#include "worker/node/node_devices.h"

namespace distro::worker::testing {

std::shared_ptr<const NodeDevices> DevicesUnderTest();

// Every strategy with as many ranks as there are devices, with and without cpu_offload.
inline std::vector<NodeCase> DeviceCases() {
  std::vector<NodeCase> cases;
  for (const Sharding sharding : kStrategies) {
    for (const bool offload : {false, true})
      cases.push_back({.sharding = sharding, .ranks = 0, .cpu_offload = offload});
  }
  return cases;
}
inline std::string DeviceCaseName(const ::testing::TestParamInfo<NodeCase>& info) {
  return absl::StrCat(Name(info.param.sharding), info.param.cpu_offload ? "_offloaded" : "");
}

}  // namespace distro::worker::testing
