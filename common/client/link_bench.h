// Measures the link to an aggregator with payloads as large as a run's: `bench-link` of
// distro-worker and distroctl (docs/tools.md). Blocking; opens a connection per channel, as a
// worker does.
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
  // Bytes of an update and of a result; 0: those of the aggregator's run, or of a model of 1.2 B
  // parameters if it has none.
  uint64_t update_bytes = 0;
  uint64_t result_bytes = 0;
  // Limit of one measurement; the bytes moved until then count. 100 ms to 60 s.
  absl::Duration transfer_limit = absl::Seconds(20);
};

// InvalidArgument names the flag; otherwise the statuses of a call. Moves less than 256 MiB each
// way per transfer; LinkTransfer says how many. `progress` gets one line per step.
absl::StatusOr<LinkMeasurement> MeasureLink(const LinkBenchOptions& options,
                                            const std::function<void(absl::string_view)>& progress);

}  // namespace distro
