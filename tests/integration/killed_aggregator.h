// An aggregator as a child process that is killed at chosen operations on its data folder and
// started again each time, on the same port, as a supervisor would. Ends with this process, however
// that ends.
#pragma once

#include <sys/types.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/client/channel.h"

namespace distro::testing {

class KilledAggregator {
 public:
  // `flags` are those of distro-aggregator, without addresses. `points` say where the first start
  // is killed, the second, ..., as kill_point_aggregator takes them; later starts are not. Returns
  // when one of them listens.
  KilledAggregator(std::vector<std::string> flags, std::vector<std::string> points);
  ~KilledAggregator() { Stop(); }
  // Asks it to end, and waits. Later calls change nothing.
  void Stop();

  // The same after every start.
  ChannelOptions channel() const;

  // What the starts said that have ended, and its lines that begin with "killed at ".
  std::string log() const;
  std::vector<std::string> killed() const;

 private:
  void Supervise();
  std::vector<std::string> Arguments(size_t start) const;

  const std::vector<std::string> flags_;
  const std::vector<std::string> points_;
  mutable absl::Mutex mu_;
  pid_t child_ ABSL_GUARDED_BY(mu_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::string address_ ABSL_GUARDED_BY(mu_);
  std::string log_ ABSL_GUARDED_BY(mu_);
  std::thread supervisor_;  // last: it begins when the rest is there
};

}  // namespace distro::testing
