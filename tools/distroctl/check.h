// `distroctl check` and `bench-link`: test whether an aggregator, and the link to it, can be used.
// `helm test` runs the first. distro-worker has the second too, with the same code
// (common/client/link_bench.h).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/process/command_line.h"
#include "common/client/channel.h"
#include "common/client/options/channel_options.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct CheckOptions {
  ChannelOptions channel;
  std::string http;                                // "host:port" of the HTTP server; empty: skipped
  bool require_run = false;                        // a missing run is a failure, not a warning
  absl::Duration timeout = 2.5 * kConnectAttempt;  // of each check; the first address may be silent
};

// One line per check: ok, warning or failed. The verdict is Aborted if one failed. InvalidArgument:
// the options. A peer that does not answer is a result, not an error.
absl::StatusOr<Report> CheckAggregator(const CheckOptions& options);

Command CheckCommand(const Console* console);

Command BenchLinkCommand(const Console* console);

}  // namespace distro::tools
