// Asks the aggregator from time to time where it stands. A thread of its own, which calls the observer. Thread-safe.
#pragma once

#include <functional>
#include <thread>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "tools/archiver/aggregator_client.h"

namespace distro::tools {

class HeadWatch {
 public:
  // `client` is borrowed. An aggregator that does not answer is asked again after `interval`.
  HeadWatch(AggregatorClient* client, absl::Duration interval,
            std::function<void(const v1::GetRunResponse&)> observer);
  // No call of the observer is running afterwards.
  ~HeadWatch();

 private:
  void Run();

  AggregatorClient* const client_;
  const absl::Duration interval_;
  const std::function<void(const v1::GetRunResponse&)> observer_;
  absl::Notification done_;
  std::thread thread_;  // last: it begins when the rest is there
};

}  // namespace distro::tools
