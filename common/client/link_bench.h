// Measures the link to an aggregator with payloads of the size that a run moves: `bench-link` of
// distro-worker and distroctl (docs/tools.md). Blocking; every channel it opens is a connection of
// its own, as those of a worker are.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/client/link_report.h"
#include "common/client/options/channel_options.h"

namespace distro {

struct LinkBenchOptions {
  ChannelOptions channel;
  // Bytes of an update and of a result; 0: those of the run, or of a model of 1.2 B parameters
  // where there is none.
  uint64_t update_bytes = 0;
  uint64_t result_bytes = 0;
  // A direction is measured this long at most; what moved until then counts. 100 ms to 60 s.
  absl::Duration transfer_limit = absl::Seconds(20);
};

// InvalidArgument names the flag; otherwise the statuses of a call. At most 256 MiB are moved each
// way in a transfer: LinkTransfer says how many. `progress` gets a line a step.
absl::StatusOr<LinkMeasurement> MeasureLink(const LinkBenchOptions& options,
                                            const std::function<void(absl::string_view)>& progress);

}  // namespace distro
