// How large a round's header gets, and what a run may therefore be: the header travels in one
// message and is kept in one piece (docs/protocol.md, "Limits"). Pure functions.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/layout/layout.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"

namespace distro {

// What the run's method adds to each header: with deltas rates, caps and medians.
uint64_t MethodHeaderBytes(const v1::RunConfig& config, const Layout& layout);

// The most workers of which a header of so many segments has room, whatever they are called and
// whatever happens; 0: not even one. What it counts for each is the largest member and the largest
// slot, without the reason (DropReasonsUnlessFits).
uint32_t MostMembers(uint32_t segments, uint64_t method_bytes = 0);

// InvalidArgument: a round of max_workers in so many segments could have a header that is too
// large. Names what to change.
absl::Status CheckHeaderBound(const v1::RunConfig& config, uint32_t segments,
                              uint64_t method_bytes = 0);

// Clears the members' reasons, which are for people only, when the header is too large with them.
void DropReasonsUnlessFits(v1::RoundHeader* header);

}  // namespace distro
