// The rule of docs/algorithm.md: momentum, of which a block's K strongest frequencies are sent as
// signs; what was included leaves the momentum. Everybody but tests reaches it through
// update_rule.h.
#pragma once

#include "absl/types/span.h"
#include "common/update/sparse_update.h"

namespace distro::worker {

// Appends the votes of coefficients [B, K] at `positions` [B, K] to those of the blocks before
// them: the sign of each, a single 0 counting as +. A block whose coefficients are all 0 casts no
// vote (docs/algorithm.md, "A worker's step"). Requires update->k = K.
void AppendSigns(absl::Span<const uint16_t> positions, absl::Span<const float> values,
                 SparseUpdate* update);

}  // namespace distro::worker
