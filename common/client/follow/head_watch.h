// Asks the aggregator for its run, for clients without a session: again and again until a run
// exists, or from time to time. All borrowed, as in Follower.
#pragma once

#include <functional>
#include <thread>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/client/connection.h"
#include "common/client/first_contact.h"
#include "common/client/follow/follower.h"
#include "distro/v1/admin.pb.h"

namespace distro {

// One attempt, 10 s at most. Unavailable with reason `fenced`: the answer is that of an aggregator
// that was replaced, its epoch is below the highest seen.
absl::StatusOr<v1::GetRunResponse> GetRun(const Follower& follower, Connection* connection);

// Until there is an answer with a run and a snapshot. Otherwise the answer that does not change,
// what ended the client, or what `contact` ends it with.
absl::StatusOr<v1::GetRunResponse> AwaitRun(const Follower& follower, Connection* connection,
                                            FirstContact* contact);

// A thread of its own, which calls the observer. Thread-safe.
class HeadWatch {
 public:
  // An aggregator that does not answer is asked again after `interval`.
  HeadWatch(const Follower& follower, Connection* connection, absl::Duration interval,
            std::function<void(const v1::GetRunResponse&)> observer);
  // No call of the observer is running afterwards.
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

  absl::Notification done_;
  std::thread thread_;  // last: it begins when the rest is there
};

}  // namespace distro
