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

// Runs `body` on one thread per rank; returns the statuses by rank. A rank whose body fails does
// not end the group.
inline std::vector<absl::Status> OnEveryRank(
    Communicators& communicators,
    const std::function<absl::Status(int rank, Communicator& communicator)>& body) {
  std::vector<absl::Status> statuses(communicators.size());
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < communicators.size(); ++rank) {
    threads.emplace_back([&, rank] {
      SetTorchThreads(1);
      statuses[rank] = body(static_cast<int>(rank), *communicators[rank]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return statuses;
}

}  // namespace distro::worker::testing
