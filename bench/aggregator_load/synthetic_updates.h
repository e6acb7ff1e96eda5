// What synthetic workers upload: random updates, in which nobody agrees and results are as large as they can be. Drawn once; a
// round's payload is one of them with the round and the segment written into its header, so that a machine's cores go into the
// aggregator and not into encoding. Within a segment all workers' updates differ.
//
// Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/layout/layout.h"

namespace distro::bench {

class SyntheticUpdates {
 public:
  // For workers `first` to `first` + `workers` - 1 of a run; 1 <= k <= 8. `layout` is borrowed.
  SyntheticUpdates(const Layout* layout, int k, int first, int workers);

  // The bytes that EncodeUpdate makes of a worker's update of a segment. `worker` counts from `first`.
  std::string Payload(int worker, RoundId round, SegmentId segment) const;

 private:
  const Layout* const layout_;
  std::vector<std::string> full_;  // [workers + segments], of whole segments
  std::vector<std::string> last_;  // [workers], of the last segment, which may be shorter
};

}  // namespace distro::bench
