// Limits on the resources that peers may take of an aggregator (docs/protocol.md, "Limits"). The
// defaults are far above an honest worker's needs: they bound the cost of a hostile or broken one.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace distro::server {

struct ServiceLimits {
  // Bytes of update payloads that have begun to arrive and are not whole, of all workers together.
  // Above it a further payload is refused until others are through. A larger value costs memory;
  // below one segment for each worker that sends at the same time, workers wait for each other.
  uint64_t inflight_bytes = uint64_t{1} << 30;
  // Bytes a second that one worker may upload, on average over a few seconds; 64 KiB or more.
  uint64_t worker_bytes_per_second = uint64_t{128} << 20;
  // Uploads at one time, and subscriptions at one time. Each costs a few tens of KiB.
  int streams = 4096;
  // Snapshots that are sent or received at one time. Each costs a frame or two, of 512 KiB.
  int snapshot_streams = 256;
  // Control calls a second of one credential, on average over a few seconds (call_rates.h; a short
  // heartbeat interval allows more). A worker makes one a heartbeat and a few a round, and an
  // honest one that is told to wait waits.
  uint64_t calls_per_second = 100;
  // Measurements of links at one time; each takes one or two. They compete with the run for the
  // aggregator's own link.
  int link_streams = 4;
  // A transfer of which less than stall_bytes move within stall_timeout is ended.
  absl::Duration stall_timeout = absl::Seconds(30);
  uint64_t stall_bytes = uint64_t{16} << 10;

  // InvalidArgument names the flag and the value.
  absl::Status Validate() const;
};

}  // namespace distro::server
