// An aggregator as a child process. It is killed at chosen operations on its data folder and
// restarted each time on the same port, as by a supervisor. It ends with this process in any case.
#pragma once

#include <sys/types.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/client/channel.h"
#include "tests/testing/loopback.h"

namespace distro::testing {

class KilledAggregator {
 public:
  // `flags` are those of distro-aggregator, without addresses. `points`: where the first start is
  // killed, the second, ..., in the format of kill_point_aggregator; later starts are not killed.
  // Returns when a start listens.
  KilledAggregator(std::vector<std::string> flags, std::vector<std::string> points);
  ~KilledAggregator() { Stop(); }
  // Stops it and waits. Idempotent.
  void Stop();

  // The same after every start.
  ChannelOptions channel() const;

  // The logs of the ended starts, and their lines that begin with "killed at ".
  std::string log() const;
  std::vector<std::string> killed() const;

 private:
  void Supervise();
  std::vector<std::string> Arguments(size_t start) const;

  const std::vector<std::string> flags_;
  const std::vector<std::string> points_;
  const HeldPort port_;
  mutable absl::Mutex mu_;
  pid_t child_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  bool listening_ ABSL_GUARDED_BY(mu_) = false;  // a start did
  std::string log_ ABSL_GUARDED_BY(mu_);
  std::thread supervisor_;  // last: starts after the other members are initialized
};

}  // namespace distro::testing
