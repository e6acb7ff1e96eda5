// A round's votes where the backend of a rank's device finds them: the decoded arrays themselves on
// the host, else a copy of one segment at a time in the device's memory. Not thread-safe.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/update/votes.h"
#include "kernels/device.h"
#include "kernels/replica/round_update.h"

namespace distro::worker {

class StagedVotes {
 public:
  // `device` is borrowed.
  explicit StagedVotes(Device* device);

  // The next round's, by segment; they stay until the device has finished. Reserves memory for the
  // largest segment.
  absl::Status Take(const std::vector<Votes>* votes);
  // Valid until another segment is asked for, in the order of what is enqueued.
  SegmentVotes Of(SegmentId segment);

 private:
  Device* const device_;
  const std::vector<Votes>* votes_ = nullptr;
  std::optional<SegmentId> copied_;
  DeviceBuffer offsets_;
  DeviceBuffer positions_;
  DeviceBuffer values_;
};

}  // namespace distro::worker
