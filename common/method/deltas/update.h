// A worker's update of a range of blocks under the deltas method, and the aggregated result
// (docs/algorithm.md, "Deltas"). Plain data and its validation.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/matrix.h"

namespace distro {

// Block b owns entries b*K .. b*K + K-1 of positions and signs.
//
//   positions  u16 [B, K]  ascending and distinct within a block, below 4096
//   signs      i8  [B, K]  +1 or -1; all 0 in an empty record (its positions are 0 then)
//   codes      u8  [B]     of the block's scale (scale.h); 0 in an empty record
//
// If a block has fewer than K elements, the worker fills the record with positions outside the
// tensor, lowest first, with sign +. Readers ignore all positions outside.
struct DeltaUpdate {
  int k = 0;
  std::vector<uint16_t> positions;
  std::vector<int8_t> signs;
  std::vector<uint8_t> codes;

  int64_t blocks() const { return static_cast<int64_t>(codes.size()); }
  bool empty(int64_t block) const { return signs[block * k] == 0; }
  absl::Span<const uint16_t> PositionsOf(int64_t block) const {
    return absl::MakeSpan(positions).subspan(block * k, k);
  }
  absl::Span<const int8_t> SignsOf(int64_t block) const {
    return absl::MakeSpan(signs).subspan(block * k, k);
  }
  // Sets `values` [K] to the block's signed values in units of 2^-44; 0 in an empty record.
  void ValuesOf(int64_t block, std::vector<int64_t>* values) const;
  bool operator==(const DeltaUpdate&) const = default;
};

// Block b owns entries offsets[b] .. offsets[b+1]-1 of positions, signs and levels.
//
//   offsets    u32 [B + 1]  starts at 0, ascending
//   positions  u16 [E]      ascending and distinct within a block, below 4096
//   signs      i8  [E]      +1 or -1
//   levels     u8  [E]      below kLevels; some level of a block is 0 unless its code is
//   codes      u8  [B]      of the block's largest magnitude; 0 in an empty block
struct DeltaResult {
  std::vector<uint32_t> offsets = {0};
  std::vector<uint16_t> positions;
  std::vector<int8_t> signs;
  std::vector<uint8_t> levels;
  std::vector<uint8_t> codes;

  int64_t blocks() const { return static_cast<int64_t>(codes.size()); }
  bool operator==(const DeltaResult&) const = default;
};

// A block of a result, in arrays of which `count` are used.
struct DeltaBlock {
  uint32_t count = 0;
  uint8_t code = 0;                                // 0 without entries
  std::array<uint16_t, kBlockElements> positions;  // ascending, below 4096
  std::array<int8_t, kBlockElements> signs;        // +1 or -1
  std::array<uint8_t, kBlockElements> levels;      // below kLevels
};

// Converts an update to a result with the same entries and codes, all levels 0, and no entries in
// blocks whose record is empty.
DeltaResult ResultOf(const DeltaUpdate& update);

// The blocks of the first part, then those of the second, ... Requires less than 2^32 entries in
// all.
DeltaResult Concatenate(std::vector<DeltaResult> parts);

// The valid positions of a segment's blocks: elements inside the tensor, or, in tensors sent as DCT
// (`as_dct` [tensors]), all frequencies.
std::vector<BlockExtent> DeltaExtents(const Layout& layout, const std::vector<bool>& as_dct,
                                      SegmentId segment);

// Checks that the update has a block for each cap and follows the rules above, with codes of at
// most `caps` [B]. InvalidArgument names the first invalid block.
absl::Status ValidateDeltaUpdate(const DeltaUpdate& update, absl::Span<const uint8_t> caps);

// The same for a result, whose positions must also be inside the tensors. DataLoss: a correct
// aggregator does not produce it.
absl::Status ValidateDeltaResult(const DeltaResult& result, absl::Span<const BlockExtent> extents,
                                 absl::Span<const uint8_t> caps);

}  // namespace distro
