// An archiver that has each snapshot stored before it replays on, so that a test knows which there
// are. For the tests of kill points.
#pragma once

#include <cstdint>
#include <string>

#include "common/client/channel.h"

namespace distro::testing {

// Follows the run to its end with the parts of distro-archiver; its own copy lies in `folder`. A
// snapshot of round 1, and of every `interval`-th one after it that is committed. Test failures:
// one is refused, or was stored and is not the newest then, also after a restart; the results
// before the last but one are never dropped.
void ArchiveSlowly(const ChannelOptions& channel, const std::string& folder, uint64_t interval);

}  // namespace distro::testing
