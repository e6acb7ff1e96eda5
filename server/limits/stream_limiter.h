// Limits open streams: their number per kind and per name, their rate, and their time without
// progress (docs/protocol.md, "Limits"). Independent of gRPC: a stream is an object that can be
// told to stop. Thread-safe.
//
//   DISTRO_ASSIGN_OR_RETURN(auto stream, limiter->Open(StreamKind::kUpload, stop));
//   stream->Identify(worker, incarnation);                 // after the header
//   DISTRO_RETURN_IF_ERROR(stream->Received(bytes));       // for every message
//
// A name has only as many places as it needs (kSubscriptionsOfAName and the others): a further
// stream ends the oldest of the same name.
//
// An identified worker keeps its place: when all places for uploads are taken, the oldest stream
// without a header is stopped.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "server/limits/byte_budget.h"
#include "server/limits/service_limits.h"
#include "server/limits/stall_watch.h"
#include "server/limits/token_bucket.h"

namespace distro::server {

// The minimum cost of a message, so that tiny ones are not free.
inline constexpr uint64_t kMinMessageCost = 256;

// Open streams of each kind that one name (a credential, or with --insecure a worker) may have. The
// oldest is stopped for a new one, because a follower that lost its connection returns while its
// old streams still look alive.
inline constexpr int kUploadsOfAName = 1;
inline constexpr int kSubscriptionsOfAName = 8;
inline constexpr int kSnapshotsOfAName = 8;
inline constexpr int kLinksOfAName = 2;  // one per direction

enum class StreamKind { kUpload, kSubscription, kSnapshot, kLink };

class StreamLimiter;

// The place of one open stream; the destructor frees it. The limiter outlives it.
class LimitedStream {
 public:
  // When it returns, `stop` is not running and will not be called. Do not call from within `stop`.
  ~LimitedStream();
  LimitedStream(const LimitedStream&) = delete;
  LimitedStream& operator=(const LimitedStream&) = delete;

  // Sets the authenticated owner: a worker's name for an upload, otherwise a credential's. If the
  // name has too many streams of this kind, its oldest is stopped: with Unavailable `limit`, or
  // Aborted `replaced` if it belongs to another process.
  void Identify(const std::string& name, uint64_t incarnation);
  // Charges a received message, after Identify. ResourceExhausted `limit`, with the time to wait:
  // above the worker's rate. A message counts as at least kMinMessageCost.
  absl::Status Received(uint64_t bytes);
  // Reports transferred payload bytes.
  void Moved(uint64_t bytes);
  // A part is complete, however small.
  void Progress();
  // Call PauseTimeout when the peer starts to wait for the server, and ResumeTimeout (the initial
  // state) when the server starts to wait for the peer. A paused stream does not stall.
  void PauseTimeout();
  void ResumeTimeout();

 private:
  friend class StreamLimiter;
  struct State;
  LimitedStream(StreamLimiter* limiter, std::shared_ptr<State> state);

  StreamLimiter* const limiter_;
  const std::shared_ptr<State> state_;
};

class StreamLimiter {
 public:
  // `clock` is borrowed. Requires valid limits.
  StreamLimiter(const ServiceLimits& limits, const Clock* clock);
  // Requires that all streams have ended.
  ~StreamLimiter();

  // Reserves a place for a new stream. `stop` is called at most once, by another thread, without
  // locks of the limiter; it must not wait for the stream's end. ResourceExhausted `limit`: all
  // places of this kind are taken.
  absl::StatusOr<std::unique_ptr<LimitedStream>> Open(
      StreamKind kind, std::function<void(const absl::Status&)> stop);

  // Stops stalled streams with DeadlineExceeded `stalled`. Subscriptions never stall: they wait for
  // the server.
  void StopStalled();

  // The budget for payloads in transfer.
  ByteBudget* inflight() { return &inflight_; }
  const ByteBudget& inflight() const { return inflight_; }
  const ServiceLimits& limits() const { return limits_; }
  // Streams that are open and were not stopped.
  int open(StreamKind kind) const;

 private:
  friend class LimitedStream;
  using State = LimitedStream::State;
  using Stopped = std::vector<std::pair<std::shared_ptr<State>, absl::Status>>;

  int Limit(StreamKind kind) const;
  int CountLocked(StreamKind kind) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Number of running streams of its kind and name, including itself.
  int OpenOfLocked(const State& stream) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MakeRoom(StreamKind kind, Stopped* stopped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MarkStalled(absl::Duration now, Stopped* stopped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  TokenBucket& BucketOf(const std::string& name, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Calls `stop` of each; without locks.
  static void Stop(const Stopped& stopped);

  const ServiceLimits limits_;
  const Clock* const clock_;
  ByteBudget inflight_;

  mutable absl::Mutex mu_;
  std::map<uint64_t, std::shared_ptr<State>> streams_ ABSL_GUARDED_BY(mu_);  // oldest first
  std::map<StreamKind, int> open_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, TokenBucket> buckets_ ABSL_GUARDED_BY(mu_);  // by name; full ones go
  uint64_t next_id_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace distro::server
