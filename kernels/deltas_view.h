// Borrowed data of the deltas method for a range of blocks, as a backend takes it. Pure.
#pragma once

#include <cstdint>

#include "absl/types/span.h"
#include "common/method/deltas/update.h"
#include "kernels/backend.h"
#include "kernels/block.h"
#include "kernels/block_site.h"

namespace distro {

// The blocks `blocks` of the result.
inline DeltasView ViewOf(const DeltaResult& result, BlockRange blocks) {
  const auto offsets = absl::MakeSpan(result.offsets).subspan(blocks.first, blocks.count + 1);
  const uint32_t begin = offsets.front(), entries = offsets.back() - begin;
  return {.offsets = offsets,
          .positions = absl::MakeSpan(result.positions).subspan(begin, entries),
          .signs = absl::MakeSpan(result.signs).subspan(begin, entries),
          .levels = absl::MakeSpan(result.levels).subspan(begin, entries),
          .codes = absl::MakeSpan(result.codes).subspan(blocks.first, blocks.count)};
}

// A segment's result in the backend's memory.
struct SegmentDeltas {
  absl::Span<const uint32_t> offsets;  // [B + 1], on the host
  DeltasView view;                     // of all its blocks, in the backend's memory
};
// `at` finds each array of the result in the backend's memory; it is called in one order.
template <typename At>
SegmentDeltas ViewAt(const DeltaResult& result, At at) {
  return {.offsets = result.offsets,
          .view = {.offsets = at(result.offsets),
                   .positions = at(result.positions),
                   .signs = at(result.signs),
                   .levels = at(result.levels),
                   .codes = at(result.codes)}};
}
// A result where it is, in host memory.
template <typename Result>
auto OnHost(const Result& result) {
  return ViewAt(result, [](const auto& array) { return absl::MakeConstSpan(array); });
}
// The blocks `blocks` of the segment.
inline DeltasView ViewOf(const SegmentDeltas& deltas, BlockRange blocks) {
  const uint32_t begin = deltas.offsets[blocks.first];
  const uint32_t entries = deltas.offsets[blocks.first + blocks.count] - begin;
  return {.offsets = deltas.view.offsets.subspan(blocks.first, blocks.count + 1),
          .positions = deltas.view.positions.subspan(begin, entries),
          .signs = deltas.view.signs.subspan(begin, entries),
          .levels = deltas.view.levels.subspan(begin, entries),
          .codes = deltas.view.codes.subspan(blocks.first, blocks.count)};
}

// A worker's records; shapes as in common/method/deltas/update.h.
struct DeltaRecordsView {
  int k = 0;
  absl::Span<const uint16_t> positions;  // [count, k]
  absl::Span<const int8_t> signs;        // [count, k]
  absl::Span<const uint8_t> codes;       // [count]

  // In host memory.
  bool empty(int64_t block) const { return signs[block * k] == 0; }
};

// The blocks `blocks` of the update.
inline DeltaRecordsView ViewOf(const DeltaUpdate& update, BlockRange blocks) {
  const int64_t k = update.k;
  return {.k = update.k,
          .positions = absl::MakeSpan(update.positions).subspan(blocks.first * k, blocks.count * k),
          .signs = absl::MakeSpan(update.signs).subspan(blocks.first * k, blocks.count * k),
          .codes = absl::MakeSpan(update.codes).subspan(blocks.first, blocks.count)};
}
// A copy of records in host memory.
inline DeltaUpdate CopyOf(const DeltaRecordsView& records) {
  return {.k = records.k,
          .positions = {records.positions.begin(), records.positions.end()},
          .signs = {records.signs.begin(), records.signs.end()},
          .codes = {records.codes.begin(), records.codes.end()}};
}

// Memory for records.
struct DeltaRecords {
  int k = 0;
  absl::Span<uint16_t> positions;  // [count, k]
  absl::Span<int8_t> signs;        // [count, k]
  absl::Span<uint8_t> codes;       // [count]

  operator DeltaRecordsView() const { return {k, positions, signs, codes}; }
};

// Aborts unless the arrays are of `blocks` blocks and 1 <= k <= 4096.
inline void CheckRecords(const DeltaRecordsView& records, int64_t blocks) {
  CheckShape(records.k >= 1 && records.k <= kBlockElements, "k is outside 1..4096");
  const auto entries = static_cast<size_t>(blocks * records.k);
  CheckShape(records.positions.size() == entries && records.signs.size() == entries &&
                 records.codes.size() == static_cast<size_t>(blocks),
             "records are not of the range");
}

}  // namespace distro
