// The update rule of the signs method (docs/algorithm.md): sends the signs of a momentum's K
// strongest frequencies per block, and subtracts the included ones from the momentum. Used through
// update_rule.h, except by tests.
#pragma once

#include "absl/types/span.h"
#include "common/method/signs/update.h"

namespace distro::worker {

// Appends the votes for coefficients [B, K] at `positions` [B, K] to `update`: the sign of each,
// where 0 counts as +. A block whose coefficients are all 0 casts no vote (docs/algorithm.md, "A
// worker's step"). Requires update->k = K.
void AppendSigns(absl::Span<const uint16_t> positions, absl::Span<const float> values,
                 SignUpdate* update);

}  // namespace distro::worker
