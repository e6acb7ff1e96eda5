// An operator who makes decisions during a run, and repeats them until they are answered. For the
// tests of kill points.
#pragma once

#include <string>

#include "common/client/channel.h"

namespace distro::testing {

// Evicts two names, admits one of them, pauses and resumes, in this order. Test failures:
// admission.pb has neither the state before a decision nor the one after it; an answered decision
// is not in the file, or not reported by the aggregator, also after a restart.
void DecideSteadily(const ChannelOptions& channel, const std::string& data_dir);

}  // namespace distro::testing
