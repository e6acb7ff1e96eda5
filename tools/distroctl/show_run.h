// `distroctl run show`: where the run of an aggregator stands, and its configuration.
#pragma once

#include "absl/status/statusor.h"
#include "common/process/command_line.h"
#include "distro/v1/admin.grpc.pb.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

// Also when there is no run yet: then it says what the aggregator waits for.
absl::StatusOr<Report> ShowRun(v1::AdminService::StubInterface* admin);

Command RunShowCommand(const Console* console);

}  // namespace distro::tools
