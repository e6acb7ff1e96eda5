// An operator who decides while a run goes on, and repeats what was not answered. For the tests of
// kill points.
#pragma once

#include <string>

#include "common/client/channel.h"

namespace distro::testing {

// Evicts two names, admits one of them, pauses and resumes, one after the other. Test failures:
// admission.pb is neither as before a decision nor as after it; a decision was answered and is not
// in the file, or not what the aggregator says, also one that was started again since.
void DecideSteadily(const ChannelOptions& channel, const std::string& data_dir);

}  // namespace distro::testing
