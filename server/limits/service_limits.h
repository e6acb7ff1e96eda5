// Limits on an aggregator's resources that peers may use (docs/protocol.md, "Limits"). The defaults
// are far above an honest worker's needs: they bound the cost of a hostile or broken one.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace distro::server {

struct ServiceLimits {
  // Bytes of partially received update payloads, of all workers together. Above the limit, further
  // payloads are refused until others are complete. A larger value costs memory; with less than one
  // segment for each worker that sends at the same time, workers wait for each other.
  uint64_t inflight_bytes = uint64_t{1} << 30;
  // Upload rate of one worker in bytes per second, averaged over a few seconds; at least 64 KiB.
  uint64_t worker_bytes_per_second = uint64_t{128} << 20;
  // Open uploads, and open subscriptions. Each costs a few tens of KiB.
  int streams = 4096;
  // Open transfers of snapshots. Each costs one or two frames (frames.h).
  int snapshot_streams = 256;
  // Control calls per second of one credential, averaged over a few seconds (call_rates.h; a short
  // heartbeat interval allows more). A worker makes one per heartbeat and a few per round.
  uint64_t calls_per_second = 100;
  // Open streams that measure links; a measurement uses one or two. They compete with the run for
  // the aggregator's link.
  int link_streams = 4;
  // A transfer that moves less than stall_bytes within stall_timeout is ended. A frame counts when
  // it is whole.
  absl::Duration stall_timeout = absl::Seconds(30);
  uint64_t stall_bytes = uint64_t{16} << 10;

  // InvalidArgument names the flag and the value.
  absl::Status Validate() const;
};

}  // namespace distro::server
