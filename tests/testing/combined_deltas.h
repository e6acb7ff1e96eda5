// The means of all blocks of updates together, for comparison with CombineDeltas.
#pragma once

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/base/status_macros.h"
#include "common/method/deltas/payload.h"

namespace distro::testing {

// As CombineDeltaPayloads.
inline absl::StatusOr<DeltaMeans> CombinedMeans(absl::Span<const WeightedDeltaPayload> payloads,
                                                const PayloadExpectation& expected,
                                                absl::Span<const BlockExtent> extents,
                                                const MeanRule& rule, GroupRange range) {
  DeltaMeans means;
  DISTRO_RETURN_IF_ERROR(CombineDeltaPayloads(
      payloads, expected, extents, rule, range, [](auto&&...) {},
      [&](uint32_t /*block*/, DeltaAccumulator& sums) { sums.EmitBlock(&means); }));
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
