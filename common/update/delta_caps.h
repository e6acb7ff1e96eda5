// Limits how far one worker can move a tensor in a round (docs/algorithm.md, "Deltas"): the largest
// scale code of an upload, computed from the uploads of the round before. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/layout/layout.h"
#include "common/update/delta_update.h"

namespace distro {

// The largest code of each tensor [tensors] that a worker sent, over its records that are not
// empty; nothing: there is no such record.
using LargestCodes = std::vector<std::optional<uint8_t>>;

// Those of an update of a segment, added to what `largest` has of earlier segments.
void AddLargestCodes(const Layout& layout, SegmentId segment, const DeltaUpdate& update,
                     LargestCodes* largest);
// Adds those of other blocks.
void AddLargestCodes(const LargestCodes& of, LargestCodes* largest);

// m of every tensor as a record has it [tensors]: 1 + MedianOfLargest, 0 where there is none.
std::vector<uint32_t> ScaleMedians(absl::Span<const LargestCodes> workers, size_t tensors);

// m_t of a tensor: the lower median of its largest codes, of the workers that have one. Nothing
// with fewer than three.
std::optional<uint8_t> MedianOfLargest(std::vector<uint8_t> codes);

// Codes that a cap is above the median: honest scales may grow by about a fifth a round.
inline constexpr int kCapGrowth = 2;

// The cap of a tensor in a round with these inner rates. `median`: m of the round before; nothing
// in round 0.
uint8_t DeltaCap(absl::Span<const float> rates, std::optional<uint8_t> median,
                 int growth = kCapGrowth);

// Those of all tensors [tensors]; `medians` as the record before has them, or none.
std::string DeltaCaps(absl::Span<const float> rates, absl::Span<const uint32_t> medians,
                      size_t tensors);

// The cap of each block of a segment. `caps`: a byte a tensor.
std::vector<uint8_t> BlockCaps(const Layout& layout, SegmentId segment, absl::string_view caps);

}  // namespace distro
