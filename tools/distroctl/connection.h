// How the commands with HOST:PORT reach their aggregator.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/client/channel_options.h"
#include "distro/v1/admin.grpc.pb.h"
#include "tools/distroctl/arguments.h"

namespace distro::tools {

// Of a command that has WithClientFlags, to the address that is its last argument.
ChannelOptions ChannelOptionsOf(const Arguments& arguments);

// Connects when it is used. As OpenChannel.
absl::StatusOr<std::unique_ptr<v1::AdminService::Stub>> OpenAdmin(const Arguments& arguments);

}  // namespace distro::tools
