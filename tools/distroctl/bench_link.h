// `distroctl bench-link`: how fast the link to an aggregator is, and whether a worker here would
// hold up the others. What distro-worker has under the same name is the same code
// (common/client/link_bench.h).
#pragma once

#include "common/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

Command BenchLinkCommand(const Console* console);

}  // namespace distro::tools
