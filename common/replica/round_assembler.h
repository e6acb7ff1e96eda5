// Puts the frames of a subscription together: what a follower of the log reads (03-protocol, "A round"). The frames
// come from a peer: nothing is reserved by a length that the layout does not allow, and every rule that is broken is
// InvalidArgument with round, segment and field.
//
// Not thread-safe.
#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "common/replica/committed_round.h"
#include "distro/v1/round.pb.h"

namespace distro {

struct OpenedRound {
  EpochId epoch;
  RoundId round;
  v1::RoundOpen open;
};

// What a frame completed: nothing yet, an opened round, or a committed one.
using RoundEvent = std::variant<std::monostate, OpenedRound, CommittedRound>;

class RoundAssembler {
 public:
  // `layout` is borrowed. Frames of rounds before `next_round` are an error.
  RoundAssembler(const Layout* layout, RoundId next_round);

  // Takes the next frame. A higher epoch voids staged segments; a lower one is FailedPrecondition ("fenced"): its sender
  // was replaced.
  absl::StatusOr<RoundEvent> Add(v1::SubscribeRoundsResponse frame);

  // The round whose frames are expected: one after the last commit.
  RoundId next_round() const { return next_round_; }
  // Payload bytes taken in so far.
  uint64_t received_payload_bytes() const { return received_payload_bytes_; }

 private:
  absl::Status AddSegmentFrame(v1::SegmentFrame frame);
  absl::StatusOr<CommittedRound> Commit(const v1::RoundCommit& commit);

  const Layout* const layout_;
  RoundId next_round_;
  EpochId epoch_;
  std::vector<std::string> staged_;  // [segments], the bytes so far
  uint64_t received_payload_bytes_ = 0;
};

}  // namespace distro
