// Bounds the size of a round's header, and thus the number of workers in a run: a header is sent in
// one message and stored in one piece (docs/protocol.md, "Limits"). Pure functions.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "common/model/layout/layout.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/run.pb.h"

namespace distro {

// The properties of a run that determine the size of its headers.
struct HeaderShape {
  uint32_t segments = 0;
  uint64_t method_bytes = 0;  // what the method adds: with deltas rates, caps and medians
  // Ranges of samples per worker beyond the first of its slot: in slots, among the unread, and
  // assigned since Open. Unread samples of a round are assigned again with the slots of the round
  // after the next, and new samples only when none are unread. So at most two rounds' samples are
  // outstanding, in pieces of a whole slot, or of a step if the run has a window.
  uint64_t ranges = 2;
};
HeaderShape HeaderShapeOf(const v1::RunConfig& config, const Layout& layout);

// The largest number of workers that always fits into a header; 0 if not even one does. Counts the
// largest member, slot and ranges for each, without the reason (DropReasonsUnlessFits).
uint32_t MostMembers(const HeaderShape& shape);

// Bytes of the header of a round with so many members, at most, without their reasons.
uint64_t LargestHeaderBytes(uint32_t members, const HeaderShape& shape);

// InvalidArgument: the header of a round with max_workers could be too large. Names the settings to
// change.
absl::Status CheckHeaderBound(const v1::RunConfig& config, const HeaderShape& shape);

// Clears the members' reasons, which only people read, if the header is too large with them.
void DropReasonsUnlessFits(v1::RoundHeader* header);

}  // namespace distro
