// The flags that say how a client talks with its aggregator (docs/security.md): the same seven in
// distro-worker, distro-archiver and distroctl, with the same words.
#pragma once

#include <vector>

#include "common/client/options/channel_options.h"
#include "common/process/flag.h"

namespace distro {

// `own`, and behind them the seven, which set all of `channel` but its address; it is borrowed.
std::vector<Flag> WithClientFlags(std::vector<Flag> own, ChannelOptions* channel);

// --connect_timeout, of those that stay (ValidateConnectTimeout).
Flag ConnectTimeoutFlag(absl::Duration* timeout);

}  // namespace distro
