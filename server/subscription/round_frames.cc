#include "server/subscription/round_frames.h"

#include <memory>
#include <string>

#include "common/rpc/frames.h"
#include "common/rpc/proto_time.h"

namespace distro::server {
namespace {

v1::SubscribeRoundsResponse Frame(EpochId epoch, RoundId round,
                                  std::optional<absl::Duration> made_at) {
  v1::SubscribeRoundsResponse frame;
  frame.set_epoch(epoch.value());
  frame.set_round(round.value());
  if (made_at) *frame.mutable_made_at() = ToProto(*made_at);
  return frame;
}

SharedBytes Serialize(const v1::SubscribeRoundsResponse& frame) {
  return std::make_shared<const std::string>(frame.SerializeAsString());
}

}  // namespace

RoundFrame MakeOpenFrame(EpochId epoch, RoundId round, const v1::RoundOpen& open,
                         std::optional<absl::Duration> made_at) {
  v1::SubscribeRoundsResponse frame = Frame(epoch, round, made_at);
  *frame.mutable_open() = open;
  return {.bytes = Serialize(frame), .segment = std::nullopt};
}

RoundFrame MakeSegmentFrame(EpochId epoch, RoundId round, SegmentId segment, uint64_t offset,
                            uint64_t payload_bytes, absl::string_view data,
                            std::optional<absl::Duration> made_at) {
  v1::SubscribeRoundsResponse frame = Frame(epoch, round, made_at);
  frame.mutable_segment()->set_segment(segment.value());
  frame.mutable_segment()->set_offset(offset);
  frame.mutable_segment()->set_payload_bytes(payload_bytes);
  frame.mutable_segment()->set_data(data.data(), data.size());
  return {.bytes = Serialize(frame), .segment = segment, .segment_end = offset + data.size()};
}

std::vector<RoundFrame> MakeSegmentFrames(EpochId epoch, RoundId round, SegmentId segment,
                                          absl::string_view payload,
                                          std::optional<absl::Duration> made_at) {
  std::vector<RoundFrame> frames;
  for (uint64_t offset = 0; offset < payload.size();) {
    const uint64_t size = FrameBytes(offset, payload.size());
    frames.push_back(MakeSegmentFrame(epoch, round, segment, offset, payload.size(),
                                      payload.substr(offset, size), made_at));
    offset += size;
  }
  return frames;
}

RoundFrame MakeCommitFrame(EpochId epoch, RoundId round, absl::string_view header) {
  v1::SubscribeRoundsResponse frame = Frame(epoch, round, std::nullopt);
  frame.mutable_commit()->set_header(header.data(), header.size());
  return {.bytes = Serialize(frame), .segment = std::nullopt};
}

}  // namespace distro::server
