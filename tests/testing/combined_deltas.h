// The means of all blocks of updates together, for comparison with CombineDeltas.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/method/deltas/payload.h"

namespace distro::testing {

// Errors are those of CheckWeights and VisitSentBlocks.
inline absl::StatusOr<DeltaMeans> CombinedMeans(absl::Span<const WeightedDeltaPayload> payloads,
                                                const PayloadExpectation& expected,
                                                absl::Span<const BlockExtent> extents,
                                                const MeanRule& rule, GroupRange range) {
  DISTRO_RETURN_IF_ERROR(CheckWeights(payloads, rule));
  DeltaMeans means;
  DeltaAccumulator accumulator(rule);
  DISTRO_RETURN_IF_ERROR(VisitSentBlocks(payloads, expected, range,
                                         [&](uint32_t block, absl::Span<const SparseSent> sent) {
                                           for (const SparseSent& of : sent)
                                             accumulator.Add(extents[block], of);
                                           accumulator.EmitBlock(&means);
                                         }));
  return means;
}
inline absl::StatusOr<DeltaMeans> CombinedMeans(absl::Span<const WeightedDeltaPayload> payloads,
                                                const PayloadExpectation& expected,
                                                absl::Span<const BlockExtent> extents,
                                                const MeanRule& rule) {
  return CombinedMeans(payloads, expected, extents, rule,
                       {.first = 0, .count = GroupsOf(expected.blocks)});
}

}  // namespace distro::testing
