// Provides a round's result to the backend of a rank's device: the decoded arrays themselves on the
// host, or a copy of one segment at a time in device memory. Not thread-safe.
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

  // Sets the result of the next round, which must stay alive until the device has finished.
  // Reserves memory for the largest segment.
  absl::Status Take(const DecodedRound* decoded);
  // The segment's result, by the round's method. Valid, in the order of enqueued work, until
  // another segment is requested.
  SegmentVotes VotesOf(SegmentId segment);
  SegmentDeltas DeltasOf(SegmentId segment);

 private:
  // Returns whether the segment is already staged, and marks it as staged.
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
