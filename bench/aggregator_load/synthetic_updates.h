// The uploads of synthetic workers: either random updates of the run's method, in which no two
// workers agree and results have the maximum size, or updates recorded from workers of a small
// model, repeated over the blocks of the run. They are encoded once; a round's payload is one of
// them with the round and the segment written into its header, so that the CPU time goes to the
// aggregator and not to encoding. Within a segment all workers' updates differ.
//
//   SyntheticUpdates updates(&layout, first, workers, SignUpdates(&layout, k, recorded));
//
// Immutable, thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/method/signs/update.h"
#include "common/model/layout/layout.h"
#include "distro/v1/run.pb.h"

namespace distro::bench {

// The updates of a folder that `convergence --record_updates` wrote. InvalidArgument: there are
// none, they are of different lengths, or a block has other than 0 or k votes.
absl::StatusOr<std::vector<SignUpdate>> ReadRecordedUpdates(const std::string& folder, int k);

// The payload of a worker's update of a segment, for round 0. `worker` counts over the run.
using UpdateMaker = std::function<std::string(SegmentId segment, int worker)>;

// Signs; 1 <= k <= 8. `recorded`: of some workers, all of as many blocks, or empty. Recorded
// workers agree as they did; workers beyond them take the same updates at other blocks. Borrows
// both.
UpdateMaker SignUpdates(const Layout* layout, int k, absl::Span<const SignUpdate> recorded);

// Deltas, random, with scale codes of at most `cap`. Borrows the layout.
UpdateMaker DeltaUpdates(const Layout* layout, int k, uint8_t cap);

// The largest scale code that every round of a run of deltas allows, whatever its workers send: the
// caps of Open are never lower. `config` is complete.
uint8_t LeastCap(const v1::RunConfig& config);

class SyntheticUpdates {
 public:
  // For workers `first` to `first` + `workers` - 1 of a run. `layout` is borrowed.
  SyntheticUpdates(const Layout* layout, int first, int workers, const UpdateMaker& make);

  // The bytes that the encoder makes of a worker's update of a segment. `worker` counts from
  // `first`.
  std::string Payload(int worker, RoundId round, SegmentId segment) const;

 private:
  const Layout* const layout_;
  std::vector<std::string> full_;  // [workers + segments], of whole segments
  std::vector<std::string> last_;  // [workers], of the last segment, which may be shorter
};

}  // namespace distro::bench
