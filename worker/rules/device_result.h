// A round's decoded result in the memory of a rank's device. Not thread-safe.
#pragma once

#include "common/base/ids.h"
#include "kernels/deltas_view.h"

namespace distro::worker {

class DeviceResult {
 public:
  virtual ~DeviceResult() = default;

  // The deltas of a segment of the round that was applied last. Valid, in the order of enqueued
  // work, until another segment is requested.
  virtual SegmentDeltas DeltasOf(SegmentId segment) = 0;
};

}  // namespace distro::worker
