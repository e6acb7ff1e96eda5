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
  // The total of all ranks since the start.
  TimeByCollective spent() const;

 private:
  mutable absl::Mutex mu_;
  TimeByCollective spent_ ABSL_GUARDED_BY(mu_) = {};
};

// Wraps a communicator so that it adds the time for which an operation blocks its caller: waiting
// for other ranks, and copying. For communicators whose operations are done when their start
// returns; those on a GPU measure their streams' time themselves.
std::unique_ptr<Communicator> TimeCommunicator(std::unique_ptr<Communicator> communicator,
                                               std::shared_ptr<CollectiveTime> time,
                                               const Clock* clock = Clock::Real());

}  // namespace distro::worker
