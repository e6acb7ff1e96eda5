// `distroctl run show` and `distroctl workers`: where a run stands.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "distro/v1/admin.grpc.pb.h"

namespace distro::tools {

// Run, state, reason, epoch, head round and configuration, several lines.
absl::StatusOr<std::string> ShowRun(v1::AdminService::StubInterface* admin);

// A line a worker: name, state, updates left on probation, next round, silence, loss, bytes up and down, reason.
absl::StatusOr<std::string> ShowWorkers(v1::AdminService::StubInterface* admin);

}  // namespace distro::tools
