// How far one worker can move a tensor in a round (docs/algorithm.md, "Deltas"): the largest scale
// code that an upload may carry, from what the workers of the round before sent. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/layout/layout.h"
#include "common/update/delta_update.h"

namespace distro {

// The largest code of each tensor [tensors] that an update of a segment has, over its records that
// are not empty; added to what `largest` has of earlier segments (nothing: no record yet).
void AddLargestCodes(const Layout& layout, SegmentId segment, const DeltaUpdate& update,
                     std::vector<std::optional<uint8_t>>* largest);

// m_t of a tensor: the lower median of its largest codes, of the workers that have one. Nothing
// with fewer than three.
std::optional<uint8_t> MedianOfLargest(std::vector<uint8_t> codes);

// Codes that a cap is above the median: honest scales may grow by about a fifth a round.
inline constexpr int kCapGrowth = 2;

// The cap of a tensor in a round with these inner rates. `median`: m of the round before; nothing
// in round 0.
uint8_t DeltaCap(absl::Span<const float> rates, std::optional<uint8_t> median,
                 int growth = kCapGrowth);

}  // namespace distro
