// One thread a rank of the node, for as long as the node works. The training thread gives all of
// them the same piece of work and waits for it; between two pieces the threads sleep. Training
// calls Torch on these threads only.
//
// Not thread-safe: one caller, which is not one of the threads.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "worker/fsdp/communicator.h"

namespace distro::worker {

struct RankThreadsOptions {
  int torch_threads = 1;  // a rank; more than 1: faster, other bits
  // How long a rank may stay behind the first one that returns. Longer than the watchdog of the
  // communicators, and than the difference between the slowest and the fastest piece of work.
  absl::Duration watchdog = absl::Minutes(3);
  // Called first on every thread: choosing the device of the rank, for one.
  std::function<absl::Status(int rank)> start = {};
};

class RankThreads {
 public:
  using Body = std::function<absl::Status(int rank, Communicator& communicator)>;

  // Starts the threads; the first Run reports what `start` failed with. Requires one communicator a
  // rank.
  RankThreads(std::vector<std::unique_ptr<Communicator>> communicators,
              const RankThreadsOptions& options);
  // Ends the threads. A thread that still does not return (see Run) is left alone.
  ~RankThreads();

  int ranks() const;

  // body on every rank's thread; returns when all have returned. A rank that returns an error or
  // throws ends the group (Abort), so that nobody waits for it, and its status comes back: "rank 2:
  // gradient: ...", the first one's. After an error every Run fails with it: the node is to be made
  // anew. To stop together without an error, the ranks agree and return OK.
  //
  // DeadlineExceeded, naming the ranks: they did not return in time (watchdog). They may still use
  // what `body` refers to: the process has to end without destroying it.
  absl::Status Run(absl::string_view phase, const Body& body);

  // Run gave a rank up: it did not return.
  bool stuck() const;

 private:
  struct State;  // shared with the threads, which may outlive this
  const std::shared_ptr<State> state_;
};

}  // namespace distro::worker
