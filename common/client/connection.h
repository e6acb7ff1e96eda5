// One of a client's connections to its aggregator. After an answer `fenced` it reconnects: the
// process behind the connection has been replaced, but while that process lives the connection
// would stay with it, even if the address now leads to the successor.
//
// After a call without an answer it reconnects if the clock was set back lately: gRPC's timers
// (1.51) follow the calendar, so that a channel would try again only when the old time is reached.
//
// Thread-safe.
#pragma once

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/client/channel.h"
#include "distro/v1/admin.grpc.pb.h"
#include "distro/v1/aggregator.grpc.pb.h"

namespace distro {

class Connection {
 public:
  using Stub = v1::AggregatorService::StubInterface;
  using AdminStub = v1::AdminService::StubInterface;

  // Connects at the first call. InvalidArgument, FailedPrecondition: as OpenChannel.
  // `clock` is borrowed.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const ChannelOptions& options,
                                                          const Clock* clock = Clock::Real());

  // For calls that begin now; the returned stub keeps its connection alive.
  std::shared_ptr<Stub> stub() const;
  std::shared_ptr<AdminStub> admin() const;

  // Call with the status of every call: after those named above the next calls resolve the address
  // and connect again.
  void Heed(const absl::Status& status);

 private:
  struct Stubs {
    std::shared_ptr<Stub> aggregator;
    std::shared_ptr<AdminStub> admin;
  };
  static absl::StatusOr<Stubs> Dial(const ChannelOptions& options);

  Connection(const ChannelOptions& options, const Clock* clock, Stubs stubs)
      : options_(options), clock_(clock), stubs_(std::move(stubs)) {}

  // Whether the calendar's time was set back, as seen from call to call, and has not reached the
  // old time yet.
  bool TimersAreLate();

  const ChannelOptions options_;
  const Clock* const clock_;
  mutable absl::Mutex mu_;
  // The calendar's time when the monotonic clock began, by the last look.
  absl::Time origin_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  absl::Duration late_until_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();  // monotonic
  Stubs stubs_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro
