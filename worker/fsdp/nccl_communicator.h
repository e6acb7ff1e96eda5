// Ranks that have a GPU each, over NCCL (docs/fsdp.md, "Communicators"). Only in builds with
// DISTRO_CUDA. Every rank has a communicator and a stream of its own for it; operations run beside
// the caller's current stream and are ordered with it by events. Sums of ReduceScatter are NCCL's:
// their order, and with it the last bits, are not promised.
//
// A thread of the group looks after operations under way: an error that NCCL reports, or an
// operation that is not done in the watchdog's time, ends the group with ncclCommAbort, which also
// ends kernels that wait for a peer.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/fsdp/collective_time.h"
#include "worker/fsdp/communicator.h"

namespace distro::worker {

struct NcclOptions {
  // From the start of an operation to its end, on the GPU. Longer than what the stream computes
  // before it.
  absl::Duration watchdog = absl::Minutes(5);
  absl::Duration poll_interval = absl::Milliseconds(100);
  const Clock* clock = Clock::Real();
  // Learns how long operations take on their streams, of all ranks; nullptr: nobody does.
  std::shared_ptr<CollectiveTime> time = nullptr;
};

// One a rank; rank r uses GPU devices[r], all of them different. Unavailable: NCCL's error.
absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> MakeNcclCommunicators(
    const std::vector<int>& devices, const NcclOptions& options);

}  // namespace distro::worker
