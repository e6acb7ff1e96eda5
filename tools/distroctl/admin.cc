#include "tools/distroctl/admin.h"

#include "common/base/status_macros.h"
#include "common/client/channel.h"

namespace distro::tools {

absl::StatusOr<std::unique_ptr<v1::AdminService::Stub>> OpenAdmin(const ChannelOptions& options) {
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel, OpenChannel(options));
  return v1::AdminService::NewStub(channel);
}

}  // namespace distro::tools
