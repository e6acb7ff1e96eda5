#include "tools/distroctl/connection.h"

#include "common/base/status_macros.h"
#include "common/client/channel.h"

namespace distro::tools {

ChannelOptions ChannelOptionsOf(const Arguments& arguments) {
  return {.aggregator = arguments.positional().back(),
          .insecure = arguments.Switch("insecure"),
          .tls = {.ca = arguments.Text("ca"),
                  .cert = arguments.Text("cert"),
                  .key = arguments.Text("key"),
                  .token_file = arguments.Text("token_file"),
                  .server_name = arguments.Text("server_name")}};
}

absl::StatusOr<std::unique_ptr<v1::AdminService::Stub>> OpenAdmin(const Arguments& arguments) {
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                          OpenChannel(ChannelOptionsOf(arguments)));
  return v1::AdminService::NewStub(channel);
}

}  // namespace distro::tools
