// A round's result where the backend of a rank's device finds it: the decoded arrays themselves on
// the host, else a copy of one segment at a time in the device's memory. Not thread-safe.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/round_log/decoded_round.h"
#include "kernels/device.h"
#include "kernels/replica/round_update.h"

namespace distro::worker {

class StagedResult {
 public:
  // `device` is borrowed.
  explicit StagedResult(Device* device);

  // The next round's; it stays until the device has finished. Reserves memory for the largest
  // segment.
  absl::Status Take(const DecodedRound* decoded);
  // Of the round's method. Valid until another segment is asked for, in the order of what is
  // enqueued.
  SegmentVotes VotesOf(SegmentId segment);
  SegmentDeltas DeltasOf(SegmentId segment);

 private:
  // Whether the segment is there already; from now on it is.
  bool IsThere(SegmentId segment);

  Device* const device_;
  const DecodedRound* decoded_ = nullptr;
  std::optional<SegmentId> copied_;
  DeviceBuffer offsets_;
  DeviceBuffer positions_;
  DeviceBuffer values_;  // votes
  DeviceBuffer signs_;   // deltas, and so on
  DeviceBuffer levels_;
  DeviceBuffer codes_;
};

}  // namespace distro::worker
