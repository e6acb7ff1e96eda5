#include "common/client/connection.h"

#include <utility>

#include "common/base/reason.h"
#include "common/base/status_macros.h"

namespace distro {
namespace {

absl::StatusOr<std::shared_ptr<Connection::Stub>> Dial(const ChannelOptions& options) {
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, OpenChannel(options));
  return std::shared_ptr<Connection::Stub>(v1::AggregatorService::NewStub(channel));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const ChannelOptions& options) {
  DISTRO_ASSIGN_OR_RETURN(std::shared_ptr<Stub> stub, Dial(options));
  return std::unique_ptr<Connection>(new Connection(options, std::move(stub)));
}

std::shared_ptr<Connection::Stub> Connection::stub() const {
  absl::MutexLock lock(&mu_);
  return stub_;
}

void Connection::Heed(const absl::Status& status) {
  if (ReasonOf(status) != "fenced") return;
  absl::StatusOr<std::shared_ptr<Stub>> again = Dial(options_);
  if (!again.ok()) return;  // the files of the credentials are being replaced: the next call tries
  absl::MutexLock lock(&mu_);
  stub_ = *std::move(again);
}

}  // namespace distro
