#include "server/subscription/frame_ring.h"

#include <utility>

namespace distro::server {

void FrameRing::Open(RoundFrame frame) {
  entries_.push_back(Entry{.round = next_round_, .frames = {}});
  Append(&entries_.back(), std::move(frame));
}

void FrameRing::ReplaceOpen(RoundFrame frame) {
  Entry& entry = entries_.back();
  entry.bytes += frame.bytes->size() - entry.frames[0].bytes->size();
  bytes_ += frame.bytes->size() - entry.frames[0].bytes->size();
  entry.frames[0] = std::move(frame);
}

void FrameRing::Add(RoundFrame frame) { Append(&entries_.back(), std::move(frame)); }

void FrameRing::Commit(RoundFrame frame) {
  Append(&entries_.back(), std::move(frame));
  entries_.back().committed = true;
  next_round_ = next_round_.Next();
  Evict();
}

void FrameRing::Append(Entry* entry, RoundFrame frame) {
  entry->bytes += frame.bytes->size();
  bytes_ += frame.bytes->size();
  entry->frames.push_back(std::move(frame));
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

}  // namespace distro::server
