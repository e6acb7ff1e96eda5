#include "common/feed/frame_ring.h"

#include <memory>
#include <string>
#include <utility>

#include "common/net/wire/frames.h"
#include "common/net/wire/proto_time.h"

namespace distro {
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
  v1::SegmentFrame* const part = frame.mutable_segment();
  part->set_segment(segment.value());
  part->set_offset(offset);
  part->set_payload_bytes(payload_bytes);
  part->set_data(data.data(), data.size());
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

RoundFrame MakeObjectFrame(EpochId epoch, RoundId round, SegmentId segment, uint64_t payload_bytes,
                           absl::string_view sha256) {
  v1::SubscribeRoundsResponse frame = Frame(epoch, round, std::nullopt);
  v1::SegmentObject* const object = frame.mutable_object();
  object->set_segment(segment.value());
  object->set_payload_bytes(payload_bytes);
  object->set_sha256(sha256.data(), sha256.size());
  return {
      .bytes = Serialize(frame), .segment = segment, .segment_end = payload_bytes, .object = true};
}

RoundFrame MakeCommitFrame(EpochId epoch, RoundId round, absl::string_view header) {
  v1::SubscribeRoundsResponse frame = Frame(epoch, round, std::nullopt);
  frame.mutable_commit()->set_header(header.data(), header.size());
  return {.bytes = Serialize(frame), .segment = std::nullopt};
}

void FrameRing::Open(RoundFrame frame) {
  entries_.push_back(Entry{.round = next_round_, .frames = {}});
  Add(std::move(frame));
}

void FrameRing::ReplaceOpen(RoundFrame frame) {
  Entry& entry = entries_.back();
  entry.bytes += frame.bytes->size() - entry.frames[0].bytes->size();
  bytes_ += frame.bytes->size() - entry.frames[0].bytes->size();
  entry.frames[0] = std::move(frame);
}

void FrameRing::Commit(RoundFrame frame) {
  Add(std::move(frame));
  entries_.back().committed = true;
  next_round_ = next_round_.Next();
  Evict();
}

void FrameRing::Add(RoundFrame frame) {
  Entry& entry = entries_.back();
  entry.bytes += frame.bytes->size();
  bytes_ += frame.bytes->size();
  entry.frames.push_back(std::move(frame));
}

void FrameRing::Evict() {
  while (bytes_ > max_bytes_ && !entries_.empty() && entries_.front().committed) {
    bytes_ -= entries_.front().bytes;
    entries_.pop_front();
  }
}

const FrameRing::Entry* FrameRing::EntryOf(RoundId round) const {
  if (entries_.empty() || round < entries_.front().round || round > entries_.back().round)
    return nullptr;
  return &entries_[round.value() - entries_.front().round.value()];
}

RingLookup FrameRing::Find(RoundId round, size_t index) const {
  if (const Entry* entry = EntryOf(round); entry != nullptr) {
    if (index >= entry->frames.size()) return {RingLookup::kWait, {}};
    return {RingLookup::kFrame, entry->frames[index]};
  }
  return {round < next_round_ ? RingLookup::kInLog : RingLookup::kWait, {}};
}

bool FrameRing::AtEnd(RoundId round, size_t index) const {
  const Entry* entry = EntryOf(round);
  return entry != nullptr && entry->committed && index >= entry->frames.size();
}

}  // namespace distro
