// Reads one worker's update payload block by block, and combines many of them without materialising
// any.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/method/signs/gap_format.h"
#include "common/method/signs/payload.h"
#include "common/method/signs/update.h"
#include "common/method/signs/votes.h"

namespace distro {

// A cursor over an update payload of either kind. Decodes a batch of blocks at a time into a buffer
// of a few KB. Not thread-safe. Borrows the payload.
class SignUpdateReader {
 public:
  // Checks everything but the body. InvalidArgument names what differs.
  static absl::StatusOr<SignUpdateReader> Create(absl::string_view payload,
                                                 const PayloadExpectation& expected);

  uint32_t blocks() const { return blocks_; }
  uint32_t next_block() const { return next_ - static_cast<uint32_t>(buffered_ - used_); }

  // Skips to a block at or after next_block() without decoding those between. Requires K <=
  // kMaxRecordK: in other bodies a block is found only by decoding those before it.
  void SkipTo(uint32_t block);

  // The next block: K ascending positions and as many signs, +1 or -1; all 0 if it casts no vote.
  // The spans are valid until the next call. InvalidArgument: the body is not a canonical encoding;
  // the last block reports errors that only the whole body shows. Requires next_block() < blocks().
  absl::Status NextBlock(absl::Span<const uint16_t>* positions, absl::Span<const int8_t>* signs) {
    if (used_ == buffered_) {
      if (absl::Status status = Fill(); !status.ok()) return status;
    }
    *positions = {positions_.data() + size_t{used_} * k_, static_cast<size_t>(k_)};
    *signs = {signs_.data() + size_t{used_} * k_, static_cast<size_t>(k_)};
    ++used_;
    return absl::OkStatus();
  }

 private:
  SignUpdateReader(const PayloadView& payload);
  absl::Status Fill();
  absl::Status FillFromGaps(uint32_t count);

  // Constant after construction.
  int k_;
  uint32_t blocks_;
  uint32_t batch_;
  absl::string_view body_;

  std::unique_ptr<GapDecoder<VoteFormat>> gaps_;  // null for records
  std::vector<uint16_t> positions_;               // [batch, K]
  std::vector<int8_t> signs_;                     // [batch, K]
  uint32_t next_ = 0;                             // first block not in the buffer
  uint32_t buffered_ = 0;
  uint32_t used_ = 0;
};

struct WeightedSignPayload {
  absl::string_view bytes;  // borrowed
  int weight = 1;           // >= 0
};

// Blocks first .. first + count - 1 of a segment.
struct SegmentRange {
  uint32_t first = 0;
  uint32_t count = 0;
};

// The sum of the payloads' updates, block by block in the order given through one VoteAccumulator.
// InvalidArgument: a payload is not valid (the message starts with its number), a negative weight,
// or K * (sum of weights) above kMaxVotesPerBlock. No payload at all gives blocks without votes.
absl::StatusOr<Votes> CombineSignPayloads(absl::Span<const WeightedSignPayload> payloads,
                                          const PayloadExpectation& expected);

// The same for a range of blocks. Requires K <= kMaxRecordK, and a range within the segment.
absl::StatusOr<Votes> CombineSignPayloads(absl::Span<const WeightedSignPayload> payloads,
                                          const PayloadExpectation& expected, SegmentRange range);

}  // namespace distro
