// Limits how far one worker can move a tensor in a round (docs/algorithm.md, "Deltas"): the largest
// scale code of an upload, computed from the uploads of the round before. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/method/base/largest_codes.h"
#include "common/method/deltas/update.h"
#include "common/model/layout/layout.h"

namespace distro {

// Adds the codes of an update of a segment to those of earlier segments in `largest`.
void AddLargestCodes(const Layout& layout, SegmentId segment, const DeltaUpdate& update,
                     LargestCodes* largest);

// m of every tensor [tensors] in a record's encoding: 1 + MedianOfLargest, or 0 if there is none.
// `before`: those of the previous record, or empty.
std::vector<uint32_t> ScaleMedians(absl::Span<const LargestCodes> workers,
                                   absl::Span<const uint32_t> before, size_t tensors);

// m_t of a tensor: the lower median of the workers' largest codes. If they are fewer than three,
// `before`, m of the previous round, takes the place of each that is missing: otherwise a worker
// could lift the cap by sending nothing. nullopt if there is no m before either.
std::optional<uint8_t> MedianOfLargest(std::vector<uint8_t> codes, std::optional<uint8_t> before);

// Number of codes from the median to the cap: honest scales may grow by about a fifth per round.
inline constexpr int kCapGrowth = 2;

// The cap of a tensor in a round with these inner rates. `median`: m of the previous round; nullopt
// in round 0.
uint8_t DeltaCap(absl::Span<const float> rates, std::optional<uint8_t> median,
                 int growth = kCapGrowth);

// The caps of all tensors [tensors]; `medians` from the previous record, or empty.
std::string DeltaCaps(absl::Span<const float> rates, absl::Span<const uint32_t> medians,
                      size_t tensors);

// The cap of each block of a segment. `caps`: one byte per tensor.
std::vector<uint8_t> BlockCaps(const Layout& layout, SegmentId segment, absl::string_view caps);

}  // namespace distro
