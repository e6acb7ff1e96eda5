#include "common/method/deltas/decode_round.h"

#include "common/base/status_macros.h"
#include "common/method/deltas/caps.h"
#include "common/method/deltas/payload.h"
#include "common/method/deltas/step.h"

namespace distro {

absl::StatusOr<std::vector<DeltaResult>> DecodeDeltaRound(const RoundPayloads& round, int threads) {
  const v1::DeltaParameters& step = round.header.step().deltas();
  const auto k = static_cast<int>(round.header.step().kept_per_block());
  const std::vector<bool> as_dct = AsDct(step, round.layout);
  return DecodeSegments<DeltaResult>(
      round.layout, threads,
      [&](SegmentId segment, int threads_each) -> absl::StatusOr<DeltaResult> {
        DISTRO_ASSIGN_OR_RETURN(
            DeltaResult result,
            DecodeDeltaResult(round.Of(segment),
                              ExpectPayload(round.layout, round.id(), segment, k), threads_each));
        DISTRO_RETURN_IF_ERROR(ValidateDeltaResult(result,
                                                   DeltaExtents(round.layout, as_dct, segment),
                                                   BlockCaps(round.layout, segment, step.caps())));
        return result;
      });
}

}  // namespace distro
