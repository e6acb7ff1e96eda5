// Limits the rate of calls per name (docs/protocol.md, "Limits"): a token bucket for every
// credential, or with --insecure for every worker's name. The rates are far above an honest
// caller's. A call above them costs neither a log line nor a lock of the run. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "server/limits/service_limits.h"
#include "server/limits/token_bucket.h"

namespace distro::server {

// The cost of a call. Most are light. Calls are heavy if they change a worker's state, which is
// logged, or start a stream: an honest caller does not do that many times a second.
inline constexpr uint64_t kLightCall = 1;
inline constexpr uint64_t kHeavyCall = 20;

// Names with their own bucket. With --insecure names can be invented: further names share one.
inline constexpr size_t kMaxRatedNames = 4096;

// Light calls per second of one name: the configured limit, or twenty per heartbeat interval if
// that is more.
uint64_t CallsPerSecond(const ServiceLimits& limits, absl::Duration heartbeat_interval);

class CallRates {
 public:
  // `clock` is borrowed. Requires calls_per_second > 0. The burst of an idle name is the calls of 4
  // s.
  CallRates(uint64_t calls_per_second, const Clock* clock);

  // Charges a call to `name`; all calls without a name share a bucket. ResourceExhausted `limit`,
  // with the time to wait: above the rate, and nothing is charged. Requires a cost of at most
  // kHeavyCall.
  absl::Status Take(absl::string_view name, uint64_t cost);

  // Names that have a bucket.
  size_t names() const;

 private:
  TokenBucket& BucketOf(absl::string_view name, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Drops full buckets; at most once a second, because it scans all of them.
  void ForgetFull(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const uint64_t calls_per_second_;
  const uint64_t burst_;
  const Clock* const clock_;

  mutable absl::Mutex mu_;
  TokenBucket shared_ ABSL_GUARDED_BY(mu_);  // of callers without a name, or without room
  std::map<std::string, TokenBucket, std::less<>> buckets_ ABSL_GUARDED_BY(mu_);
  absl::Duration forget_after_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
};

}  // namespace distro::server
