// Limits open streams: their number by kind and by name, their rate, and their time without
// progress (docs/protocol.md, "Limits"). Independent of gRPC: a stream is an object that can be
// told to stop. Thread-safe.
//
// No name has more places than it needs (kSubscriptionsOfAName and the others): beyond them it
// displaces itself, not others.
//
// A worker's place is safe: when all places for uploads are taken, the oldest stream that has not
// yet said whose it is (no header came) makes room.
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

// What a message counts as at least, so that tiny ones are not free.
inline constexpr uint64_t kMinMessageCost = 256;

// Places that one name may have of a kind: of a credential, or with --insecure of a worker. A
// follower that lost its connection comes back while its older streams still look alive, so it is
// the oldest that makes room.
inline constexpr int kUploadsOfAName = 1;
inline constexpr int kSubscriptionsOfAName = 8;
inline constexpr int kSnapshotsOfAName = 8;
inline constexpr int kLinksOfAName = 2;  // it measures both ways

enum class StreamKind { kUpload, kSubscription, kSnapshot, kLink };

class StreamGate;

// The place of one open stream; its end gives the place back. The gate outlives it.
class GatedStream {
 public:
  // Afterwards `stop` does not run and will not be called. Not from within `stop`.
  ~GatedStream();
  GatedStream(const GatedStream&) = delete;
  GatedStream& operator=(const GatedStream&) = delete;

  // Whose stream it is, once that was checked: a worker's name for an upload, otherwise a
  // credential's. Beyond what one name may have of this kind its oldest is stopped: Unavailable
  // `limit`, that of another process Aborted `replaced`.
  void Identify(const std::string& name, uint64_t incarnation);
  // A message of so many bytes came, after Identify. ResourceExhausted `limit`, with the time to
  // wait: more than the worker's rate. A message counts as 256 bytes at least, so that tiny ones
  // are not free.
  absl::Status Received(uint64_t bytes);
  // So many bytes of what the stream is for moved.
  void Moved(uint64_t bytes);
  // A part is done, however small.
  void Progress();
  // From now on the peer waits for us (Work), or we for the peer (Wait, at first). Only waiting can
  // stall.
  void Work();
  void Wait();

 private:
  friend class StreamGate;
  struct State;
  GatedStream(StreamGate* gate, std::shared_ptr<State> state);

  StreamGate* const gate_;
  const std::shared_ptr<State> state_;
};

class StreamGate {
 public:
  // `clock` is borrowed. Requires valid limits.
  StreamGate(const ServiceLimits& limits, const Clock* clock);
  // Requires that all streams have ended.
  ~StreamGate();

  // A place for a stream that begins. `stop` is called at most once, by another thread, without
  // locks of the gate; it must not wait for the stream's end. ResourceExhausted `limit`: all places
  // of the kind are taken.
  absl::StatusOr<std::unique_ptr<GatedStream>> Open(StreamKind kind,
                                                    std::function<void(const absl::Status&)> stop);

  // Stops streams that stall, with DeadlineExceeded `stalled`. Subscriptions never stall: they wait
  // for us.
  void Sweep();

  // Of payloads that are arriving.
  ByteBudget* inflight() { return &inflight_; }
  const ByteBudget& inflight() const { return inflight_; }
  const ServiceLimits& limits() const { return limits_; }
  // Streams that are open and were not stopped.
  int open(StreamKind kind) const;

 private:
  friend class GatedStream;
  using State = GatedStream::State;
  using Stopped = std::vector<std::pair<std::shared_ptr<State>, absl::Status>>;

  int Limit(StreamKind kind) const;
  int CountLocked(StreamKind kind) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Streams of its kind and name that were not stopped, and it.
  int OpenOfLocked(const State& stream) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool MakeRoom(StreamKind kind, Stopped* stopped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void MarkStalled(absl::Duration now, Stopped* stopped) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  TokenBucket& BucketOf(const std::string& name, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Tells them; no locks held.
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
