// The command line of distroctl.
#pragma once

#include <string>
#include <vector>

#include "common/rpc/channel.h"
#include "tools/distroctl/certs.h"
#include "tools/distroctl/create_run.h"
#include "tools/distroctl/init_model.h"
#include "tools/distroctl/log_ls.h"
#include "tools/distroctl/log_show.h"
#include "tools/distroctl/log_verify.h"
#include "tools/distroctl/replay_log.h"

namespace distro::tools {

// Parses argv with absl's flags (--help and --version end the process) and returns the positional arguments, without
// the program's name.
std::vector<std::string> ParseCommandLine(int argc, char** argv);

InitModelOptions InitModelOptionsFromFlags();
CertsOptions CertsOptionsFromFlags();
std::string RoleFromFlags();
std::string TokensFileFromFlags();
CreateRunOptions CreateRunOptionsFromFlags();
LogLsOptions LogLsOptionsFromFlags();
// Without a round.
LogShowOptions LogShowOptionsFromFlags();
LogVerifyOptions LogVerifyOptionsFromFlags();
ReplayLogOptions ReplayLogOptionsFromFlags();
// --reason of pause and evict.
std::string ReasonFromFlags();
// For the aggregator at `url`.
ChannelOptions ChannelOptionsFromFlags(const std::string& url);

}  // namespace distro::tools
