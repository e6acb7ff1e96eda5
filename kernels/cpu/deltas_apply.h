// Backend::ApplyDeltas on every CPU: validation, the step of tensors sent as elements, and the
// votes for the integer transform of tensors sent as DCT. The arithmetic is in a separate source
// file from the floating-point environment (kernels/cpu/exact.h says why).
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/backend.h"
#include "kernels/block_site.h"
#include "kernels/cpu/exact.h"

namespace distro::exact {

// The entries of block `block` of the view, counted from 0; nullopt if they break the rules.
std::optional<BlockDeltas> DeltasOfBlock(const DeltasView& result, int64_t block,
                                         const BlockSite& site, bool as_dct);

// Aborts unless `result` covers `blocks` blocks and its arrays are as long as its offsets say.
void CheckDeltas(const DeltasView& result, int64_t blocks);

// p <- p - step of every entry.
void SubtractEntries(const BlockSite& site, float alpha, const BlockDeltas& deltas,
                     float* parameters);

// values [deltas.count] <- V; returns w.
float FormVotes(const BlockDeltas& deltas, float alpha, int16_t* values);

// Implements Backend::ApplyDeltas. transform(site, votes, w) does p <- p - float(IDCTint(votes)) *
// w; it too must be defined in another source file.
template <typename Transform>
void ApplyDeltas(const MatrixShape& matrix, BlockRange blocks, const DeltaApplyOptions& options,
                 const DeltasView& result, absl::Span<float> parameters, uint32_t* invalid,
                 const Transform& transform) {
  CheckBlocks(matrix, blocks, parameters.size());
  CheckDeltas(result, blocks.count);
  const DefaultFloatEnvironment environment;
  int16_t values[kBlockElements];
  for (int64_t b = 0; b < blocks.count; ++b) {
    const BlockSite site = SiteOf(matrix, blocks.first + b);
    const std::optional<BlockDeltas> deltas = DeltasOfBlock(result, b, site, options.as_dct);
    if (!deltas.has_value()) {
      *invalid = static_cast<uint32_t>(b);
    } else if (!options.as_dct) {
      SubtractEntries(site, options.alpha, *deltas, parameters.data());
    } else if (deltas->count > 0) {
      const float step = FormVotes(*deltas, options.alpha, values);
      transform(
          site,
          BlockVotes{
              .positions = deltas->positions, .values = values, .count = deltas->count, .shift = 0},
          step);
    }
  }
}

}  // namespace distro::exact
