// A communicator over NCCL for ranks with one GPU each (docs/fsdp.md, "Communicators"). Every rank
// has a communicator and a stream for it; operations run in parallel to the caller's current stream
// and are ordered with it by events. NCCL computes the sums of ReduceScatter: their order, and so
// their last bits, are unspecified.
//
// The ranks' threads wait for each other when they start an operation, and enqueue it together
// (docs/decisions/0027).
//
// A thread of the group watches the operations in progress. If NCCL reports an error, or an
// operation exceeds the watchdog's time, it ends the group by ncclCommAbort, which also ends
// kernels that wait for a peer.
#pragma once

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/fsdp/collective_time.h"
#include "worker/fsdp/communicator.h"
#include "worker/fsdp/nccl_api.h"

namespace distro::worker {

struct NcclOptions {
  // How long a rank waits for the others to start an operation, and the limit from there to its end
  // on the GPU. Must exceed the time of the work ahead of it on the stream.
  absl::Duration watchdog = absl::Minutes(5);
  absl::Duration poll_interval = absl::Milliseconds(100);
  const Clock* clock = Clock::Real();
  // Optional. Receives the time of operations on their streams, of all ranks.
  std::shared_ptr<CollectiveTime> time = nullptr;
};

// One a rank; rank r uses devices[r], all of them different and of the type that `nccl` is for.
// Unavailable: NCCL's error.
absl::StatusOr<std::vector<std::unique_ptr<Communicator>>> MakeNcclCommunicators(
    std::shared_ptr<Nccl> nccl, const std::vector<at::Device>& devices, const NcclOptions& options);

}  // namespace distro::worker
