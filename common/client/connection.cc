#include "common/client/connection.h"

#include <algorithm>

#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/client/diagnosis.h"

namespace distro {

absl::StatusOr<Connection::Stubs> Connection::Dial(const ChannelOptions& options) {
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, OpenChannel(options));
  return Stubs{.aggregator = v1::AggregatorService::NewStub(channel),
               .admin = v1::AdminService::NewStub(channel)};
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(const ChannelOptions& options,
                                                             const Clock* clock) {
  DISTRO_ASSIGN_OR_RETURN(Stubs stubs, Dial(options));
  auto connection = std::unique_ptr<Connection>(new Connection(options, clock, std::move(stubs)));
  connection->TimersAreLate();
  return connection;
}

bool Connection::TimersAreLate() {
  constexpr absl::Duration kReadingTakesLess = absl::Seconds(1);
  const absl::Duration now = clock_->MonotonicNow();
  const absl::Time origin = clock_->WallNow() - now;
  absl::MutexLock lock(&mu_);
  const absl::Duration back = origin_ - origin;
  origin_ = origin;
  if (back > kReadingTakesLess) late_until_ = std::max(late_until_, now + back);
  return now < late_until_;
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
  const bool stuck = TimersAreLate() && MayBeTheConnection(status);
  if (ReasonOf(status) != "fenced" && !stuck) return;
  absl::StatusOr<Stubs> again = Dial(options_);
  if (!again.ok()) return;  // the credentials' files are being replaced: the next call tries again
  absl::MutexLock lock(&mu_);
  stubs_ = *std::move(again);
}

}  // namespace distro
