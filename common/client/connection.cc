#include "common/client/connection.h"

#include "common/base/reason.h"
#include "common/base/status_macros.h"

namespace distro {

absl::StatusOr<Connection::Stubs> Connection::Dial(const ChannelOptions& options) {
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, OpenChannel(options));
  return Stubs{.aggregator = v1::AggregatorService::NewStub(channel),
               .admin = v1::AdminService::NewStub(channel)};
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const ChannelOptions& options) {
  DISTRO_ASSIGN_OR_RETURN(Stubs stubs, Dial(options));
  return std::unique_ptr<Connection>(new Connection(options, std::move(stubs)));
}

std::shared_ptr<Connection::Stub> Connection::stub() const {
  absl::MutexLock lock(&mu_);
  return stubs_.aggregator;
}

std::shared_ptr<Connection::AdminStub> Connection::admin() const {
  absl::MutexLock lock(&mu_);
  return stubs_.admin;
}

void Connection::Heed(const absl::Status& status) {
  if (ReasonOf(status) != "fenced") return;
  absl::StatusOr<Stubs> again = Dial(options_);
  if (!again.ok()) return;  // the credentials' files are being replaced: the next call tries again
  absl::MutexLock lock(&mu_);
  stubs_ = *std::move(again);
}

}  // namespace distro
