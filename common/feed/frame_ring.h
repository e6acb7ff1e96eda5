// Frames of rounds for subscriptions, each serialized once and shared by all, and a ring of recent
// rounds' frames in memory. Bounded: drops the oldest committed rounds first, and never the open
// round, since the log does not have it.
//
// Functions that make frames are pure. The ring is not thread-safe: its owner (Broadcast) has the
// mutex.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/run/record/committed_round.h"
#include "distro/v1/round.pb.h"

namespace distro {

// A serialized SubscribeRoundsResponse, and the segment's bytes up to its end.
struct RoundFrame {
  SharedBytes bytes;
  std::optional<SegmentId> segment;  // of a segment frame or object
  uint64_t segment_end = 0;          // bytes of the segment's payload up to the end of this frame
  bool object = false;               // in the place of the segment's frames
};

// `made_at` is monotonic.
RoundFrame MakeOpenFrame(EpochId epoch, RoundId round, const v1::RoundOpen& open,
                         std::optional<absl::Duration> made_at = std::nullopt);

// The payload's frames in order, each at most kFrameBytes.
std::vector<RoundFrame> MakeSegmentFrames(EpochId epoch, RoundId round, SegmentId segment,
                                          absl::string_view payload,
                                          std::optional<absl::Duration> made_at = std::nullopt);

// One such frame: `data` are the bytes at `offset` of a payload of `payload_bytes`. Requires offset
// < payload_bytes, and data within the payload.
RoundFrame MakeSegmentFrame(EpochId epoch, RoundId round, SegmentId segment, uint64_t offset,
                            uint64_t payload_bytes, absl::string_view data,
                            std::optional<absl::Duration> made_at = std::nullopt);

// The segment's payload as an object; `sha256` are its 32 bytes.
RoundFrame MakeObjectFrame(EpochId epoch, RoundId round, SegmentId segment, uint64_t payload_bytes,
                           absl::string_view sha256);

// `header` is the record's.
RoundFrame MakeCommitFrame(EpochId epoch, RoundId round, absl::string_view header);

// The next frame of a subscriber: in memory, not yet available, or only in the log.
struct RingLookup {
  enum Kind { kFrame, kWait, kInLog } kind = kWait;
  RoundFrame frame;
};

class FrameRing {
 public:
  // `next_round` is the first round that is not in the log.
  FrameRing(uint64_t max_bytes, RoundId next_round)
      : max_bytes_(max_bytes), next_round_(next_round) {}

  // Starts the next round with its Open frame.
  void Open(RoundFrame frame);
  // Replaces the Open frame of the open round.
  void ReplaceOpen(RoundFrame frame);
  // Adds a frame of a segment to the open round.
  void Add(RoundFrame frame);
  // Adds the commit frame of the open round and closes it.
  void Commit(RoundFrame frame);

  // Frame `index` of `round`.
  RingLookup Find(RoundId round, size_t index) const;
  // Whether `index` is after the commit frame of `round`.
  bool AtEnd(RoundId round, size_t index) const;

  // The round that is open or will open next.
  RoundId head() const { return next_round_; }
  uint64_t bytes() const { return bytes_; }

 private:
  struct Entry {
    RoundId round;
    bool committed = false;
    std::vector<RoundFrame> frames;
    uint64_t bytes = 0;
  };
  const Entry* EntryOf(RoundId round) const;
  void Evict();

  const uint64_t max_bytes_;
  RoundId next_round_;
  std::deque<Entry> entries_;  // consecutive rounds; only the last may be open
  uint64_t bytes_ = 0;
};

}  // namespace distro
