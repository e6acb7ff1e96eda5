// An archiver that waits until each snapshot is stored before it continues the replay, so that a
// test knows the existing snapshots. For the tests of kill points.
#pragma once

#include <cstdint>
#include <string>

#include "common/client/channel.h"

namespace distro::testing {

// Follows the run to its end with the classes of distro-archiver; its own copy is in `folder`.
// Uploads a snapshot of round 1, and of every `interval`-th committed round after it. Test
// failures: a snapshot is refused; a stored one is not the newest afterwards, also after a restart;
// the results before the second newest are never dropped.
void ArchiveSlowly(const ChannelOptions& channel, const std::string& folder, uint64_t interval);

}  // namespace distro::testing
