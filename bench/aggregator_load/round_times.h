// Records when rounds and their segments opened and closed, as seen by the workers of one process,
// and checks that all of them saw the same rounds. Times are of the machine's monotonic clock, so
// that the records of several processes can be compared. Thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/ids.h"

namespace distro::bench {

class RoundTimes {
 public:
  RoundTimes(uint64_t rounds, uint32_t segments);

  // The first worker's time counts.
  void Opened(RoundId round);
  // A worker handed the last byte of a segment's upload to the transport; the last worker's time
  // counts.
  void Sent(RoundId round, SegmentId segment);
  // A worker has the aggregator's acknowledgement of a segment; the last worker's time counts.
  void Acknowledged(RoundId round, SegmentId segment);
  // A worker has bytes of a segment's result: the first worker's first and the last worker's last
  // count.
  void Received(RoundId round, SegmentId segment);
  // A worker has the round's commit; the last worker's time counts. DataLoss: another worker saw
  // another chain hash.
  absl::Status Committed(RoundId round, uint64_t hash, uint64_t result_bytes);

  // One line per round, a JSON object: round, opened, committed (seconds), hash, result_bytes, and
  // for each segment [sent, acknowledged, first received, last received].
  std::string Json() const;

 private:
  struct Segment {
    absl::Duration sent, acknowledged, first, last;
  };
  struct Round {
    absl::Duration opened, committed;
    uint64_t hash = 0;
    uint64_t result_bytes = 0;
    std::vector<Segment> segments;
  };

  mutable absl::Mutex mu_;
  std::vector<Round> rounds_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::bench
