// One of a client's connections to its aggregator. After an answer `fenced` it reconnects: the
// process behind the connection has been replaced, but while that process lives the connection
// would stay with it, even if the address now leads to the successor.
//
// Thread-safe.
#pragma once

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/client/channel.h"
#include "distro/v1/admin.grpc.pb.h"
#include "distro/v1/aggregator.grpc.pb.h"

namespace distro {

class Connection {
 public:
  using Stub = v1::AggregatorService::StubInterface;
  using AdminStub = v1::AdminService::StubInterface;

  // Connects at the first call. InvalidArgument, FailedPrecondition: as OpenChannel.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const ChannelOptions& options);

  // For calls that begin now; the returned stub keeps its connection alive.
  std::shared_ptr<Stub> stub() const;
  std::shared_ptr<AdminStub> admin() const;

  // Call with the status of every call: after `fenced` the next calls resolve the address and
  // connect again.
  void Heed(const absl::Status& status);

 private:
  struct Stubs {
    std::shared_ptr<Stub> aggregator;
    std::shared_ptr<AdminStub> admin;
  };
  static absl::StatusOr<Stubs> Dial(const ChannelOptions& options);

  Connection(const ChannelOptions& options, Stubs stubs)
      : options_(options), stubs_(std::move(stubs)) {}

  const ChannelOptions options_;
  mutable absl::Mutex mu_;
  Stubs stubs_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro
