// Converts a DeltaResult to the view that a backend takes. Pure.
#pragma once

#include "absl/types/span.h"
#include "common/update/delta_update.h"
#include "kernels/backend.h"
#include "kernels/block.h"

namespace distro {

// The blocks `blocks` of the result, borrowed.
inline DeltasView ViewOf(const DeltaResult& result, BlockRange blocks) {
  const auto offsets = absl::MakeSpan(result.offsets).subspan(blocks.first, blocks.count + 1);
  const uint32_t begin = offsets.front(), entries = offsets.back() - begin;
  return {.offsets = offsets,
          .positions = absl::MakeSpan(result.positions).subspan(begin, entries),
          .signs = absl::MakeSpan(result.signs).subspan(begin, entries),
          .levels = absl::MakeSpan(result.levels).subspan(begin, entries),
          .codes = absl::MakeSpan(result.codes).subspan(blocks.first, blocks.count)};
}

}  // namespace distro
