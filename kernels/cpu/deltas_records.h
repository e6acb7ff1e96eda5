// Writes the record of a block, and finds the entries of it that the result included. Shared by
// deltas_compress.h (elements) and deltas_transform.h (frequencies). Pure functions.
#pragma once

#include <cmath>
#include <cstdint>

#include "absl/types/span.h"
#include "common/method/deltas/scale.h"
#include "common/method/deltas/update.h"
#include "kernels/deltas_view.h"

namespace distro {

// Appends the record of a block: K ascending positions, the signs of their values (0 counts as +)
// and one scale code, at most `cap`. `inside`: how many of the positions are inside the tensor; the
// values of the others are 0.
void AppendRecord(absl::Span<const uint16_t> positions, absl::Span<const float> values, int inside,
                  uint8_t cap, DeltaUpdate* update);

// Calls body(position, q) for each position of the record of this block that the result's block has
// too; q is sign * M(c) * 2^-44, exact.
template <typename Body>
void ForEachReturned(const DeltaRecordsView& sent, const DeltasView& result, int64_t block,
                     Body body) {
  if (sent.empty(block)) return;
  const float scale = std::ldexp(static_cast<float>(ScaleOf(sent.codes[block])), -kScaleUnitBits);
  uint32_t returned = result.offsets[block] - result.offsets[0];
  const uint32_t end = result.offsets[block + 1] - result.offsets[0];
  for (int64_t i = block * sent.k; i < (block + 1) * sent.k; ++i) {
    const uint16_t position = sent.positions[i];
    while (returned < end && result.positions[returned] < position) ++returned;
    if (returned == end) return;
    if (result.positions[returned] == position)
      body(position, static_cast<float>(sent.signs[i]) * scale);
  }
}

}  // namespace distro
