#include "server/limits/stream_limiter.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"

namespace distro::server {
namespace {

constexpr uint64_t kBurstSeconds = 4;
constexpr uint64_t kMinBurst = 2 << 20;  // more than any message
constexpr size_t kBucketsKept = 1024;    // beyond it those that are full are forgotten
constexpr absl::Duration kRetryAfter = absl::Seconds(1);

absl::Status LimitError(absl::StatusCode code, absl::string_view message) {
  return ErrorWithReason(code, "limit", message);
}

absl::string_view NameOf(StreamKind kind) {
  switch (kind) {
    case StreamKind::kUpload:
      return "uploads";
    case StreamKind::kSubscription:
      return "subscriptions";
    case StreamKind::kSnapshot:
      return "snapshot transfers";
    case StreamKind::kLink:
      return "measurements of links";
  }
  return "streams";
}

int PlacesOfAName(StreamKind kind) {
  switch (kind) {
    case StreamKind::kUpload:
      return kUploadsOfAName;
    case StreamKind::kSubscription:
      return kSubscriptionsOfAName;
    case StreamKind::kSnapshot:
      return kSnapshotsOfAName;
    case StreamKind::kLink:
      return kLinksOfAName;
  }
  return 1;
}

absl::Status NewerStream(StreamKind kind, absl::string_view name) {
  return LimitError(absl::StatusCode::kUnavailable,
                    absl::StrCat(name, ": a newer stream began, and one name may have ",
                                 PlacesOfAName(kind), " ", NameOf(kind)));
}

absl::Status NewerProcess(absl::string_view worker) {
  return ErrorWithReason(
      absl::StatusCode::kAborted, "replaced",
      absl::StrCat("worker ", worker, ": replaced by a newer process of this name"));
}

}  // namespace

struct LimitedStream::State {
  State(StreamKind kind_in, uint64_t id_in, StallWatch watch_in,
        std::function<void(const absl::Status&)> stop_in)
      : kind(kind_in), id(id_in), watch(watch_in), stop(std::move(stop_in)) {}

  // Constant after construction.
  const StreamKind kind;
  const uint64_t id;

  // Guarded by the limiter's mutex.
  StallWatch watch;
  std::string name;  // whose; empty: not known yet
  uint64_t incarnation = 0;
  bool stopped = false;  // no longer counts

  absl::Mutex stop_mu;                                                     // held while `stop` runs
  std::function<void(const absl::Status&)> stop ABSL_GUARDED_BY(stop_mu);  // null: over
};

LimitedStream::LimitedStream(StreamLimiter* limiter, std::shared_ptr<State> state)
    : limiter_(limiter), state_(std::move(state)) {}

LimitedStream::~LimitedStream() {
  {
    absl::MutexLock lock(&limiter_->mu_);
    if (!state_->stopped) --limiter_->open_[state_->kind];
    limiter_->streams_.erase(state_->id);
  }
  absl::MutexLock lock(&state_->stop_mu);
  state_->stop = nullptr;
}

void LimitedStream::Identify(const std::string& name, uint64_t incarnation) {
  StreamLimiter::Stopped stopped;
  {
    absl::MutexLock lock(&limiter_->mu_);
    state_->name = name;
    state_->incarnation = incarnation;
    int excess = limiter_->OpenOfLocked(*state_) - PlacesOfAName(state_->kind);
    for (const auto& [id, other] : limiter_->streams_) {
      if (excess <= 0) break;
      if (other == state_ || other->kind != state_->kind || other->name != name) continue;
      if (std::exchange(other->stopped, true)) continue;
      --excess;
      --limiter_->open_[other->kind];
      stopped.emplace_back(other, other->incarnation == incarnation
                                      ? NewerStream(state_->kind, name)
                                      : NewerProcess(name));
    }
  }
  StreamLimiter::Stop(stopped);
}

absl::Status LimitedStream::Received(uint64_t bytes) {
  absl::MutexLock lock(&limiter_->mu_);
  if (state_->name.empty()) return absl::OkStatus();
  const absl::Duration now = limiter_->clock_->MonotonicNow();
  const absl::Duration wait =
      limiter_->BucketOf(state_->name, now).Take(std::max(bytes, kMinMessageCost), now);
  if (wait == absl::ZeroDuration()) return absl::OkStatus();
  return WithRetryAfter(LimitError(absl::StatusCode::kResourceExhausted,
                                   absl::StrCat("refused: the worker sends more than ",
                                                limiter_->limits_.worker_bytes_per_second,
                                                " bytes a second (--worker_rate_limit)")),
                        wait);
}

void LimitedStream::Moved(uint64_t bytes) {
  absl::MutexLock lock(&limiter_->mu_);
  state_->watch.Moved(bytes, limiter_->clock_->MonotonicNow());
}

void LimitedStream::Progress() {
  absl::MutexLock lock(&limiter_->mu_);
  state_->watch.Progress(limiter_->clock_->MonotonicNow());
}

void LimitedStream::PauseTimeout() {
  absl::MutexLock lock(&limiter_->mu_);
  state_->watch.Pause(limiter_->clock_->MonotonicNow());
}

void LimitedStream::ResumeTimeout() {
  absl::MutexLock lock(&limiter_->mu_);
  state_->watch.Resume(limiter_->clock_->MonotonicNow());
}

StreamLimiter::StreamLimiter(const ServiceLimits& limits, const Clock* clock)
    : limits_(limits), clock_(clock), inflight_(limits.inflight_bytes) {}

StreamLimiter::~StreamLimiter() = default;

int StreamLimiter::Limit(StreamKind kind) const {
  if (kind == StreamKind::kLink) return limits_.link_streams;
  return kind == StreamKind::kSnapshot ? limits_.snapshot_streams : limits_.streams;
}

int StreamLimiter::CountLocked(StreamKind kind) const {
  const auto it = open_.find(kind);
  return it == open_.end() ? 0 : it->second;
}

int StreamLimiter::OpenOfLocked(const State& stream) const {
  return static_cast<int>(std::ranges::count_if(streams_, [&stream](const auto& entry) {
    const State& other = *entry.second;
    return other.kind == stream.kind && other.name == stream.name &&
           (!other.stopped || &other == &stream);
  }));
}

int StreamLimiter::open(StreamKind kind) const {
  absl::MutexLock lock(&mu_);
  return CountLocked(kind);
}

absl::StatusOr<std::unique_ptr<LimitedStream>> StreamLimiter::Open(
    StreamKind kind, std::function<void(const absl::Status&)> stop) {
  Stopped stopped;
  std::unique_ptr<LimitedStream> stream;
  {
    absl::MutexLock lock(&mu_);
    const absl::Duration now = clock_->MonotonicNow();
    if (CountLocked(kind) < Limit(kind) || MakeRoom(kind, &stopped)) {
      auto state = std::make_shared<State>(
          kind, next_id_++, StallWatch(limits_.stall_timeout, limits_.stall_bytes, now),
          std::move(stop));
      streams_.emplace(state->id, state);
      ++open_[kind];
      stream.reset(new LimitedStream(this, std::move(state)));
    }
  }
  Stop(stopped);
  if (stream != nullptr) return stream;
  const bool of_flag = kind == StreamKind::kUpload || kind == StreamKind::kSubscription;
  return WithRetryAfter(
      LimitError(absl::StatusCode::kResourceExhausted,
                 absl::StrCat(Limit(kind), " ", NameOf(kind), " are open, the limit",
                              of_flag ? " (--max_streams)" : "")),
      kRetryAfter);
}

bool StreamLimiter::MakeRoom(StreamKind kind, Stopped* stopped) {
  MarkStalled(clock_->MonotonicNow(), stopped);
  if (CountLocked(kind) < Limit(kind)) return true;
  if (kind != StreamKind::kUpload) return false;
  for (const auto& [id, state] : streams_) {
    if (state->kind != kind || state->stopped || !state->name.empty()) continue;
    state->stopped = true;
    --open_[kind];
    stopped->emplace_back(
        state, LimitError(absl::StatusCode::kResourceExhausted,
                          "no header came, and another upload took this place (--max_streams)"));
    return true;
  }
  return false;
}

void StreamLimiter::MarkStalled(absl::Duration now, Stopped* stopped) {
  for (const auto& [id, state] : streams_) {
    if (state->stopped || state->kind == StreamKind::kSubscription || !state->watch.Stalled(now))
      continue;
    state->stopped = true;
    --open_[state->kind];
    stopped->emplace_back(
        state, ErrorWithReason(
                   absl::StatusCode::kDeadlineExceeded, "stalled",
                   absl::StrCat("stalled: less than ", limits_.stall_bytes, " bytes moved within ",
                                absl::FormatDuration(limits_.stall_timeout))));
  }
}

void StreamLimiter::StopStalled() {
  Stopped stopped;
  {
    absl::MutexLock lock(&mu_);
    MarkStalled(clock_->MonotonicNow(), &stopped);
  }
  Stop(stopped);
}

TokenBucket& StreamLimiter::BucketOf(const std::string& name, absl::Duration now) {
  const auto it = buckets_.find(name);
  if (it != buckets_.end()) return it->second;
  if (buckets_.size() >= kBucketsKept)
    std::erase_if(buckets_, [now](const auto& bucket) { return bucket.second.Full(now); });
  const uint64_t rate = limits_.worker_bytes_per_second;
  return buckets_.try_emplace(name, rate, std::max(kBurstSeconds * rate, kMinBurst), now)
      .first->second;
}

void StreamLimiter::Stop(const Stopped& stopped) {
  for (const auto& [state, status] : stopped) {
    absl::MutexLock lock(&state->stop_mu);
    if (const auto stop = std::exchange(state->stop, nullptr)) stop(status);
  }
}

}  // namespace distro::server
