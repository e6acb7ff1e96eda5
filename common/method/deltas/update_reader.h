// Reads update payloads of deltas that are not dense, group by group.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/method/codec/gap_model.h"
#include "common/method/codec/payload_framing.h"
#include "common/method/deltas/gap_format.h"
#include "common/model/layout/matrix.h"

namespace distro {

// A group of kGroupBlocks blocks of an update, the last of a segment fewer.
struct SentGroup {
  uint32_t blocks = 0;
  std::vector<uint16_t> entries;            // K of each block that is not empty, as SentPosition
  std::array<uint8_t, kGroupBlocks> codes;  // [blocks] of the scale; 0 if the record is empty
  std::array<bool, kGroupBlocks> empty;     // [blocks]
};

// An entry of a SentGroup is position + kBlockElements * negative.
constexpr uint16_t SentPosition(uint16_t entry) { return entry % kBlockElements; }
constexpr bool SentNegative(uint16_t entry) { return entry >= kBlockElements; }

// A cursor over an update payload. Not thread-safe. Borrows the payload.
class DeltaUpdateReader {
 public:
  // Groups that are read faster together than alone.
  static constexpr uint32_t kGroupsAtOnce = 4;

  // Starts at a group of kGroupBlocks blocks. Checks everything but the body. InvalidArgument names
  // the field that differs. Requires a group of the segment.
  static absl::StatusOr<DeltaUpdateReader> Create(absl::string_view payload,
                                                  const PayloadExpectation& expected,
                                                  uint32_t first_group = 0);

  // Reads the next groups. InvalidArgument: the body is not a canonical encoding of blocks with K
  // entries or none, all of level 0; errors that only the whole body shows are returned with the
  // last group. Requires that as many groups are left, and no earlier error.
  absl::Status NextGroups(absl::Span<SentGroup> groups);

 private:
  DeltaUpdateReader(std::shared_ptr<const GapBody<DeltaFormat>> body, int k, uint32_t first_group);
  // The next `number` groups; false if one is not valid.
  template <size_t number>
  bool Decode(absl::Span<SentGroup> groups);
  // What is wrong with the next group, of `blocks` blocks.
  absl::Status FaultOf(uint32_t blocks) const;

  const uint32_t k_;
  const bool whole_;
  std::shared_ptr<const GapBody<DeltaFormat>> body_;
  uint32_t next_;  // group
  GapModel<DeltaFormat> model_;
};

}  // namespace distro
