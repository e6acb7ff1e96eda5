// One of a client's connections to its aggregator. It can be made anew: an answer `fenced` says
// that the process behind it was replaced, and as long as that one lives the connection would stay
// with it, whatever the address means by now.
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

  // Connects when it is used. InvalidArgument, FailedPrecondition: as OpenChannel.
  static absl::StatusOr<std::unique_ptr<Connection>> Open(const ChannelOptions& options);

  // For the calls that begin now; those keep it alive.
  std::shared_ptr<Stub> stub() const;
  std::shared_ptr<AdminStub> admin() const;

  // Heeds how a call ended: after `fenced` the next calls look the address up and connect again.
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
