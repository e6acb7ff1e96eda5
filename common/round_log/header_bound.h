// Bounds the size of a round's header, and with it the size of a run: the header travels in one
// message and is stored in one piece (docs/protocol.md, "Limits"). Pure functions.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/layout/layout.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"

namespace distro {

// What of a run decides how large its headers get.
struct HeaderShape {
  uint32_t segments = 0;
  uint64_t method_bytes = 0;  // what the method adds: with deltas rates, caps and medians
  // Ranges of samples a worker beside the first of its slot: in slots, among the unread, and given
  // since Open. What is not read of a round comes back when the slots of the round after the next
  // are given, and new samples are given when nothing is unread: so no more are out than two rounds
  // have, in pieces of a whole slot, or with a window of a step.
  uint64_t ranges = 2;
};
HeaderShape HeaderShapeOf(const v1::RunConfig& config, const Layout& layout);

// The most workers of which a header has room, whatever they are called and whatever happens; 0:
// not even one. What it counts for each is the largest member, slot and ranges, without the reason
// (DropReasonsUnlessFits).
uint32_t MostMembers(const HeaderShape& shape);

// InvalidArgument: a round of max_workers could have a header that is too large. Names what to
// change.
absl::Status CheckHeaderBound(const v1::RunConfig& config, const HeaderShape& shape);

// Clears the members' reasons, which are for people only, when the header is too large with them.
void DropReasonsUnlessFits(v1::RoundHeader* header);

}  // namespace distro
