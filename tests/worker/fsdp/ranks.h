// Ranks as threads, for tests.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "worker/fsdp/communicator.h"

namespace distro::worker::testing {

using Communicators = std::vector<std::unique_ptr<Communicator>>;

// Runs `body` on one thread per rank; returns the statuses by rank, of a body that throws Torch's
// exceptions too. A rank whose body fails does not end the group.
inline std::vector<absl::Status> OnEveryRank(
    Communicators& communicators,
    const std::function<absl::Status(int rank, Communicator& communicator)>& body) {
  std::vector<absl::Status> statuses(communicators.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < communicators.size(); ++rank) {
    threads.emplace_back([&, rank] {
      SetTorchThreads(1);
      statuses[rank] =
          CatchTorch("rank", [&] { return body(static_cast<int>(rank), *communicators[rank]); });
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

// As OnEveryRank; a rank whose body fails ends the group.
inline std::vector<absl::Status> OnEveryRankTogether(
    Communicators& communicators,
    const std::function<absl::Status(int rank, Communicator& communicator)>& body) {
  return OnEveryRank(communicators, [&](int rank, Communicator& communicator) {
    const absl::Status status = CatchTorch("rank", [&] { return body(rank, communicator); });
    if (!status.ok()) communicator.Abort(status);
    return status;
  });
}

}  // namespace distro::worker::testing
