// What a worker has sent of a round whose result it does not know yet: enough to take it out of the momentum once it counts,
// and to send the same bytes again. Plain data.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/ids.h"

namespace distro::worker {

struct PendingUpdate {
  struct Segment {
    std::vector<uint16_t> positions;  // [B, K]
    std::vector<float> values;        // [B, K]
  };

  RoundId round;
  int k = 0;
  std::vector<Segment> segments;  // [segments]
};

}  // namespace distro::worker
