#include "server/limits/call_rates.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"

namespace distro::server {
namespace {

constexpr uint64_t kBurstSeconds = 4;
constexpr double kCallsOfAHeartbeat = 20;
constexpr absl::Duration kForgetEvery = absl::Seconds(1);

}  // namespace

uint64_t CallsPerSecond(const ServiceLimits& limits, absl::Duration heartbeat_interval) {
  const double heartbeats = 1 / absl::ToDoubleSeconds(heartbeat_interval);
  return std::max(limits.calls_per_second, static_cast<uint64_t>(kCallsOfAHeartbeat * heartbeats));
}

CallRates::CallRates(uint64_t calls_per_second, const Clock* clock)
    : calls_per_second_(calls_per_second),
      burst_(std::max(kBurstSeconds * calls_per_second, kHeavyCall)),
      clock_(clock),
      shared_(calls_per_second_, burst_, clock->MonotonicNow()) {}

absl::Status CallRates::Take(absl::string_view name, uint64_t cost) {
  absl::MutexLock lock(&mu_);
  const absl::Duration now = clock_->MonotonicNow();
  const absl::Duration wait = BucketOf(name, now).Take(cost, now);
  if (wait == absl::ZeroDuration()) return absl::OkStatus();
  return WithRetryAfter(
      ErrorWithReason(absl::StatusCode::kResourceExhausted, "limit",
                      absl::StrCat("refused: more than ", calls_per_second_,
                                   " calls a second with one name; a join, a leave or a new stream "
                                   "counts as ",
                                   kHeavyCall)),
      wait);
}

size_t CallRates::names() const {
  absl::MutexLock lock(&mu_);
  return buckets_.size();
}

TokenBucket& CallRates::BucketOf(absl::string_view name, absl::Duration now) {
  if (name.empty()) return shared_;
  if (const auto it = buckets_.find(name); it != buckets_.end()) return it->second;
  if (buckets_.size() >= kMaxRatedNames) ForgetFull(now);
  if (buckets_.size() >= kMaxRatedNames) return shared_;
  return buckets_.try_emplace(std::string(name), calls_per_second_, burst_, now).first->second;
}

void CallRates::ForgetFull(absl::Duration now) {
  if (now < forget_after_) return;
  forget_after_ = now + kForgetEvery;
  std::erase_if(buckets_, [now](const auto& bucket) { return bucket.second.Full(now); });
}

}  // namespace distro::server
