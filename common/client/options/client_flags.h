// The flags of a connection to an aggregator (docs/security.md): the same seven, with the same help
// texts, in distro-worker, distro-archiver and distroctl.
#pragma once

#include <string>
#include <vector>

#include "common/base/process/flag.h"
#include "common/client/options/channel_options.h"

namespace distro {

// Returns `own` followed by the seven, which set all of `channel` except its address. `channel` is
// borrowed.
std::vector<Flag> WithClientFlags(std::vector<Flag> own, ChannelOptions* channel);

// --connect_timeout, for programs that keep running (ValidateConnectTimeout).
Flag ConnectTimeoutFlag(absl::Duration* timeout);

// --mirrors, for programs that follow the rounds (ValidateMirrors, ChosenMirrors).
Flag MirrorsFlag(std::vector<std::string>* mirrors);

}  // namespace distro
