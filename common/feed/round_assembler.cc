#include "common/feed/round_assembler.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/run/record/round_checks.h"

namespace distro {
namespace {

absl::Status CheckDeadline(const google::protobuf::Duration& deadline) {
  if (deadline.seconds() >= 0 && deadline.seconds() <= 315'576'000'000 && deadline.nanos() >= 0 &&
      deadline.nanos() < 1'000'000'000) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError("deadline: is not a duration of 0 or more");
}

absl::Status CheckOpen(const v1::RoundOpen& open, const Layout& layout) {
  DISTRO_RETURN_IF_ERROR(CheckStepParameters(open.step(), layout));
  if (open.has_deadline()) DISTRO_RETURN_IF_ERROR(CheckDeadline(open.deadline()));
  DISTRO_RETURN_IF_ERROR(Annotate(CheckSlots(open.slots(), UINT64_MAX), "slots"));
  return Annotate(CheckSlots(open.next_slots(), UINT64_MAX), "next_slots");
}

}  // namespace

RoundAssembler::RoundAssembler(const Layout* layout, RoundId next_round, ObjectSource* objects)
    : layout_(layout), objects_(objects), next_round_(next_round) {}

absl::StatusOr<RoundEvent> RoundAssembler::Add(v1::SubscribeRoundsResponse frame) {
  DISTRO_RETURN_IF_ERROR(EnterRound(EpochId(frame.epoch()), RoundId(frame.round())));
  const std::string where = absl::StrCat("round ", frame.round());
  switch (frame.frame_case()) {
    case v1::SubscribeRoundsResponse::kOpen:
      DISTRO_RETURN_IF_ERROR(Annotate(AddOpen(frame.open()), where + ": open"));
      return OpenedRound{epoch_, next_round_, std::move(*frame.mutable_open())};
    case v1::SubscribeRoundsResponse::kSegment:
      DISTRO_RETURN_IF_ERROR(
          Annotate(AddSegmentFrame(frame.segment()),
                   absl::StrCat(where, ": segment ", frame.segment().segment())));
      return RoundEvent();
    case v1::SubscribeRoundsResponse::kObject:
      DISTRO_RETURN_IF_ERROR(Annotate(AddObject(frame.object()),
                                      absl::StrCat(where, ": segment ", frame.object().segment())));
      return RoundEvent();
    case v1::SubscribeRoundsResponse::kCommit: {
      DISTRO_ASSIGN_OR_RETURN(CommittedRound round, Commit(frame.commit()));
      return round;
    }
    case v1::SubscribeRoundsResponse::FRAME_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(where +
                                    ": the frame is empty or of a kind this version does not know");
}

absl::Status RoundAssembler::EnterRound(EpochId epoch, RoundId round) {
  if (epoch.value() == 0) return absl::InvalidArgumentError("epoch: is 0");
  if (epoch < epoch_) {
    return absl::FailedPreconditionError(absl::StrCat("fenced: a frame of epoch ", epoch.value(),
                                                      " came after epoch ", epoch_.value()));
  }
  if (epoch > epoch_) ClearStage();
  epoch_ = epoch;
  if (round == next_round_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("round: a frame of round ", round.value(),
                                                 " where ", next_round_.value(), " is expected"));
}

void RoundAssembler::ClearStage() {
  opened_ = false;
  staged_.clear();
}

absl::Status RoundAssembler::AddOpen(const v1::RoundOpen& open) {
  if (opened_) return absl::InvalidArgumentError("comes twice in an epoch");
  if (!staged_.empty()) return absl::InvalidArgumentError("comes after a segment of the round");
  opened_ = true;
  return CheckOpen(open, *layout_);
}

absl::StatusOr<RoundAssembler::Staged*> RoundAssembler::StagedOf(uint32_t segment) {
  const uint32_t segments = layout_->segments();
  if (segment >= segments)
    return absl::InvalidArgumentError(absl::StrCat("the layout has ", segments));
  if (staged_.empty()) {
    staged_.reserve(segments);
    for (uint32_t i = 0; i < segments; ++i)
      staged_.push_back({PayloadAssembler(MaxPayloadBytes(*layout_, SegmentId(i)))});
  }
  Staged* const staged = &staged_[segment];
  if (staged->object != nullptr) return absl::InvalidArgumentError("comes after its object");
  return staged;
}

absl::Status RoundAssembler::AddSegmentFrame(const v1::SegmentFrame& frame) {
  DISTRO_ASSIGN_OR_RETURN(Staged* const staged, StagedOf(frame.segment()));
  return staged->frames.Add(frame.offset(), frame.data(), frame.payload_bytes());
}

absl::Status RoundAssembler::AddObject(const v1::SegmentObject& object) {
  if (objects_ == nullptr) return absl::InvalidArgumentError("an object was not asked for");
  DISTRO_ASSIGN_OR_RETURN(Staged* const staged, StagedOf(object.segment()));
  if (staged->frames.received() > 0)
    return absl::InvalidArgumentError("the object comes after frames");
  if (object.sha256().size() != sizeof(Sha256Digest)) {
    return absl::InvalidArgumentError(
        absl::StrCat("sha256: ", object.sha256().size(), " bytes, expected 32"));
  }
  DISTRO_RETURN_IF_ERROR(
      CheckPayloadBytes(*layout_, SegmentId(object.segment()), object.payload_bytes()));
  DISTRO_ASSIGN_OR_RETURN(staged->object, objects_->Fetch(next_round_, object));
  return absl::OkStatus();
}

absl::StatusOr<CommittedRound> RoundAssembler::Commit(const v1::RoundCommit& commit) {
  std::vector<SharedBytes> payloads(layout_->segments());
  for (size_t i = 0; i < staged_.size(); ++i) {
    auto& [frames, object] = staged_[i];
    payloads[i] = std::move(object);
    if (frames.complete()) payloads[i] = std::make_shared<const std::string>(frames.Take());
  }
  ClearStage();
  DISTRO_ASSIGN_OR_RETURN(CommittedRound round,
                          MakeCommittedRound(commit.header(), std::move(payloads), *layout_));
  if (round.round() != next_round_) {
    return absl::InvalidArgumentError(absl::StrCat("round ", next_round_.value(),
                                                   ": the commit's header is of round ",
                                                   round.round().value()));
  }
  if (round.header->epoch() > epoch_.value()) {
    return absl::InvalidArgumentError(absl::StrCat("round ", next_round_.value(),
                                                   ": header of epoch ", round.header->epoch(),
                                                   " in a frame of epoch ", epoch_.value()));
  }
  next_round_ = next_round_.Next();
  return round;
}

}  // namespace distro
