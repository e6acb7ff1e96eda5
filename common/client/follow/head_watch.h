// Asks the aggregator for its run, for clients without a session: repeatedly until a run exists, or
// periodically. All pointers are borrowed, as in Follower.
#pragma once

#include <functional>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/steady_cond_var.h"
#include "common/client/connection.h"
#include "common/client/first_contact.h"
#include "common/client/follow/follower.h"
#include "distro/v1/admin.pb.h"

namespace distro {

// Makes one attempt of at most 10 s, and waits up to `wait` for a connection; an attempt after a
// failed one needs a `wait` above 0 (client_state.h, ClientCall). Unavailable with reason `fenced`:
// an aggregator that has been replaced answered (its epoch is below the highest seen).
absl::StatusOr<v1::GetRunResponse> GetRun(const Follower& follower, Connection* connection,
                                          absl::Duration wait = absl::ZeroDuration());

// Blocks until an answer has a run and a snapshot. Otherwise returns a final refusal, the status
// that ended the client, or the one with which `contact` ends it.
absl::StatusOr<v1::GetRunResponse> AwaitRun(const Follower& follower, Connection* connection,
                                            FirstContact* contact);

// Asks periodically, on a thread of its own, and passes each answer to the observer. Thread-safe.
class HeadWatch {
 public:
  // Waits `interval` between calls, also after a call without an answer.
  HeadWatch(const Follower& follower, Connection* connection, absl::Duration interval,
            std::function<void(const v1::GetRunResponse&)> observer);
  // When it returns, the observer is not running and will not be called.
  ~HeadWatch();
  HeadWatch(const HeadWatch&) = delete;
  HeadWatch& operator=(const HeadWatch&) = delete;

 private:
  void Run();

  // Constant after construction.
  const Follower follower_;
  Connection* const connection_;
  const absl::Duration interval_;
  const std::function<void(const v1::GetRunResponse&)> observer_;

  SteadyNotification done_;
  std::thread thread_;  // last: starts after the other members are initialized
};

}  // namespace distro
