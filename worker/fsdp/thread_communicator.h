// A communicator for ranks that are threads of this process, on any device; several may share one
// (docs/fsdp.md, "Communicators"). In an operation the ranks meet, each copies or sums its share in
// the others' memory, and they meet again. Exact: sums are f32 in ascending rank order, so the same
// parts give the same bits. On a device with streams every operation waits for the caller's stream.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/fsdp/communicator.h"

namespace distro::worker {

struct ThreadGroupOptions {
  // How long a rank waits for another. Must exceed the difference between the slowest and the
  // fastest micro-batch.
  absl::Duration watchdog = absl::Minutes(2);
  const Clock* clock = Clock::Real();
};

// The state shared by the communicators of one node. Thread-safe; the communicators keep it alive.
class ThreadGroup {
 public:
  virtual ~ThreadGroup() = default;
  // One per rank. Destroying a communicator while the group works ends the group: "rank 2 left".
  virtual std::vector<std::unique_ptr<Communicator>> TakeCommunicators() = 0;
  // The number of ranks that are waiting for another.
  virtual int waiting() const = 0;
  // Makes waiting ranks check the clock, for tests with a fake clock.
  virtual void CheckWatchdog() = 0;
};

// Requires ranks >= 1, a positive watchdog, a clock that outlives the group.
std::shared_ptr<ThreadGroup> MakeThreadGroup(int ranks, const ThreadGroupOptions& options);

}  // namespace distro::worker
