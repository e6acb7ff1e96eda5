// `distroctl check-connection`: tests every step of the connection to an aggregator and shows the
// results and the fault (docs/troubleshooting.md). Needs no role.
#pragma once

#include "absl/status/statusor.h"
#include "common/base/process/command_line.h"
#include "common/client/probe/probe.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

// The verdict is the fault's status, as StatusOf (common/client/probe/connection_fault.h) gives it.
// Fails with the statuses of Diagnose, for the options.
absl::StatusOr<Report> CheckConnection(const ProbeOptions& options);

// Pure.
Report ConnectionReport(const ConnectionLook& look);

Command CheckConnectionCommand(const Console* console);

}  // namespace distro::tools
