// Measures the time that the ranks of a node spend in collective operations, by operation
// (docs/metrics.md, "Only where there is a source"). Thread-safe: ranks add, the training thread
// reads.
#pragma once

#include <array>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace distro::worker {

class Communicator;

enum class CollectiveOp { kAllGather, kReduceScatter, kAllToAll, kBarrier };
inline constexpr int kCollectiveOps = 4;
using TimeByCollective = std::array<absl::Duration, kCollectiveOps>;

class CollectiveTime {
 public:
  void Add(CollectiveOp op, absl::Duration time);
  // Of all ranks together, since the start.
  TimeByCollective spent() const;

 private:
  mutable absl::Mutex mu_;
  TimeByCollective spent_ ABSL_GUARDED_BY(mu_) = {};
};

// The same, which adds the time that its caller is kept by an operation: waiting for other ranks
// and moving. For communicators whose operations are done when their start returns; those on a GPU
// count their streams' time themselves.
std::unique_ptr<Communicator> TimeCommunicator(std::unique_ptr<Communicator> communicator,
                                               std::shared_ptr<CollectiveTime> time,
                                               const Clock* clock = Clock::Real());

}  // namespace distro::worker
