// Updates that are a function of (worker, round, segment), for tests without training.
#pragma once

#include <string>

#include "common/base/ids.h"
#include "common/client/exchange/exchange.h"
#include "common/method/signs/update.h"
#include "common/model/layout/layout.h"

namespace distro::testing {

inline constexpr uint64_t kScriptedStateHash = 0x5eed;

// K distinct positions a block, some blocks without a vote.
SignUpdate ScriptedSegment(const Layout& layout, RoundId round, SegmentId segment,
                           const std::string& worker, int k);

// All segments, encoded; or an abstention.
RoundUpdate ScriptedUpdate(const Layout& layout, RoundId round, const std::string& worker, int k,
                           bool abstain);

}  // namespace distro::testing
