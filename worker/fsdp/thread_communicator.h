// Ranks that are threads of this process, on any device, several on one too (docs/fsdp.md,
// "Communicators"). Ranks meet, each does its own share of the copying or summing in the others'
// memory, and they meet again. Exact: sums are f32 in ascending rank order, so the same parts give
// the same bits. On a device with streams every operation waits for the caller's stream.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/fsdp/communicator.h"

namespace distro::worker {

struct ThreadGroupOptions {
  // How long a rank waits for another. Longer than the difference between the slowest and the
  // fastest micro-batch.
  absl::Duration watchdog = absl::Minutes(2);
  const Clock* clock = Clock::Real();
};

// What the communicators of one node share. Thread-safe; the communicators keep it alive.
class ThreadGroup {
 public:
  virtual ~ThreadGroup() = default;
  // One a rank. A communicator that is destroyed while the group works ends the group: "rank 2
  // left".
  virtual std::vector<std::unique_ptr<Communicator>> TakeCommunicators() = 0;
  // Ranks that wait for another now.
  virtual int waiting() const = 0;
  // Lets waiting ranks look at the clock again; for clocks that jump (tests). Real time needs no
  // call.
  virtual void CheckWatchdog() = 0;
};

// Requires ranks >= 1, a positive watchdog, a clock that outlives the group.
std::shared_ptr<ThreadGroup> MakeThreadGroup(int ranks, const ThreadGroupOptions& options);

}  // namespace distro::worker
