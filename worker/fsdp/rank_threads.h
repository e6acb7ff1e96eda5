// One thread per rank of a node. The training thread runs the same function on all of them and
// waits; between calls the threads sleep. Training calls Torch only on these threads.
//
//   threads.Run("gradient", [&](int rank, Communicator& communicator) { return ...; });
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
  int torch_threads = 1;  // per rank; more than 1 is faster but gives other bits
  // How long a rank may take after the first one has returned. Must exceed the watchdog of the
  // communicators, and the difference between the slowest and the fastest rank.
  absl::Duration watchdog = absl::Minutes(3);
  // Called first on every thread, for example to select the rank's device.
  std::function<absl::Status(int rank)> start = {};
};

class RankThreads {
 public:
  using Body = std::function<absl::Status(int rank, Communicator& communicator)>;

  // Starts the threads; the first Run returns an error of `start`. Requires one communicator per
  // rank.
  RankThreads(std::vector<std::unique_ptr<Communicator>> communicators,
              const RankThreadsOptions& options);
  // Ends the threads. Detaches a thread that still does not return (see Run).
  ~RankThreads();

  int ranks() const;

  // Runs `body` on every rank's thread; returns when all have returned. A rank that returns an
  // error or throws ends the group (Abort), so that no rank waits for it. Returns the first such
  // error: "rank 2: gradient: ...". After an error every later Run fails with it: make a new node.
  // To stop together without an error, the ranks agree and return OK.
  //
  // DeadlineExceeded, with the ranks: they did not return in time (watchdog). They may still use
  // what `body` refers to, so the process must exit without destroying it.
  absl::Status Run(absl::string_view phase, const Body& body);

  // Whether a rank did not return from Run in time.
  bool stuck() const;

 private:
  struct State;  // shared with the threads, which may outlive this
  const std::shared_ptr<State> state_;
};

}  // namespace distro::worker
