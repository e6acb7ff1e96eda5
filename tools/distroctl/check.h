// `distroctl check` and `bench-link`: can this aggregator, and the link to it, be used? The first
// is what `helm test` runs; what distro-worker has under the name of the second is the same code
// (common/client/link_bench.h).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/client/options/channel_options.h"
#include "common/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct CheckOptions {
  ChannelOptions channel;
  std::string http;          // "host:port" of the HTTP side; empty: it is not looked at
  bool require_run = false;  // no run is a failure, not a warning
  absl::Duration timeout = absl::Seconds(10);  // of each question
};

// A line for each question: ok, warning or failed. The verdict is Aborted when something failed.
// InvalidArgument: the options; a peer that does not answer is an answer here.
absl::StatusOr<Report> CheckAggregator(const CheckOptions& options);

Command CheckCommand(const Console* console);

Command BenchLinkCommand(const Console* console);

}  // namespace distro::tools
