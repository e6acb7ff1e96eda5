// Assembles rounds from the frames of a subscription, for followers of the log (docs/protocol.md).
// Frames are untrusted: a length that the layout does not allow causes no allocation, and every
// violation is InvalidArgument with round, segment and field.
//
//   RoundAssembler assembler(&layout, next_round);
//   DISTRO_ASSIGN_OR_RETURN(RoundEvent event, assembler.Add(std::move(frame)));
//   if (const auto* round = std::get_if<CommittedRound>(&event))
//     DISTRO_RETURN_IF_ERROR(replica.Apply(*round));
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/shared_bytes.h"
#include "common/feed/object_source.h"
#include "common/model/layout/layout.h"
#include "common/net/wire/frames.h"
#include "common/run/record/committed_round.h"
#include "distro/v1/round.pb.h"

namespace distro {

struct OpenedRound {
  EpochId epoch;
  RoundId round;
  v1::RoundOpen open;
  // When its frame arrived, by the follower's monotonic clock; not set without a network.
  std::optional<absl::Duration> arrived = std::nullopt;
};

// What a frame completed: nothing, an opened round, or a committed round.
using RoundEvent = std::variant<std::monostate, OpenedRound, CommittedRound>;

class RoundAssembler {
 public:
  // `layout` and `objects` are borrowed. Frames of rounds before `next_round` are an error, and so
  // are objects where `objects` is null: the stream was not asked for them.
  RoundAssembler(const Layout* layout, RoundId next_round, ObjectSource* objects = nullptr);

  // Adds the next frame. A higher epoch discards staged segments; a lower one is FailedPrecondition
  // ("fenced"): its sender was replaced. A round's Open precedes its segments and occurs at most
  // once per epoch. An object is fetched at once. Unavailable, Cancelled: as ObjectSource::Fetch.
  // After an error, start a new stream with a new assembler at next_round().
  absl::StatusOr<RoundEvent> Add(v1::SubscribeRoundsResponse frame);

  // The round whose frames are expected: one after the last commit.
  RoundId next_round() const { return next_round_; }

 private:
  absl::Status EnterRound(EpochId epoch, RoundId round);
  absl::Status AddOpen(const v1::RoundOpen& open);
  absl::Status AddSegmentFrame(const v1::SegmentFrame& frame);
  absl::Status AddObject(const v1::SegmentObject& object);
  absl::StatusOr<CommittedRound> Commit(const v1::RoundCommit& commit);
  void ClearStage();

  // A segment's payload while it arrives: frames, or a whole object.
  struct Staged {
    PayloadAssembler frames;
    SharedBytes object = nullptr;
  };
  absl::StatusOr<Staged*> StagedOf(uint32_t segment);

  const Layout* layout_;
  ObjectSource* objects_;
  RoundId next_round_;
  EpochId epoch_;
  bool opened_ = false;         // of next_round_ in epoch_
  std::vector<Staged> staged_;  // [segments]; empty before the first segment frame or object
};

}  // namespace distro
