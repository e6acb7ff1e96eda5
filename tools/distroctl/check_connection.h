// `distroctl check-connection`: every step of the way to an aggregator, what was seen at each, and
// what is in the way (docs/troubleshooting.md). It needs no role: what it asks is anybody's.
#pragma once

#include "absl/status/statusor.h"
#include "common/client/probe/probe.h"
#include "common/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

// The verdict is what StatusOf (common/client/probe/connection_fault.h) makes of a fault. The
// statuses of Diagnose: the options.
absl::StatusOr<Report> CheckConnection(const ProbeOptions& options);

// Pure.
Report ConnectionReport(const ConnectionLook& look);

Command CheckConnectionCommand(const Console* console);

}  // namespace distro::tools
