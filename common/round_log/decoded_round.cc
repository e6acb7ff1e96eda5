#include "common/round_log/decoded_round.h"

#include <algorithm>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/codec/delta_payload.h"
#include "common/codec/payload.h"
#include "common/round_log/delta_step.h"
#include "common/update/delta_caps.h"

namespace distro {
namespace {

// Decodes segments in parallel; if there are fewer than threads, several threads share a segment.
template <typename Result>
absl::StatusOr<std::vector<Result>> DecodeSegments(
    const Layout& layout, int threads,
    absl::FunctionRef<absl::StatusOr<Result>(SegmentId segment, int threads)> decode) {
  const auto segments = static_cast<int>(layout.segments());
  const int threads_each = std::max(1, threads / std::max(1, segments));
  std::vector<absl::StatusOr<Result>> decoded(segments);
  RunParallel(threads, segments, [&](int /*thread*/, int64_t i) {
    decoded[i] = decode(SegmentId(static_cast<uint32_t>(i)), threads_each);
  });
  std::vector<Result> results;
  for (int i = 0; i < segments; ++i) {
    DISTRO_RETURN_IF_ERROR(Annotate(decoded[i].status(), absl::StrCat("segment ", i)));
    results.push_back(*std::move(decoded[i]));
  }
  return results;
}

absl::StatusOr<DeltaResult> DecodeDeltas(const Layout& layout, const CommittedRound& round,
                                         const std::vector<bool>& as_dct, SegmentId segment,
                                         int threads) {
  DISTRO_ASSIGN_OR_RETURN(
      DeltaResult result,
      DecodeDeltaResult(*round.payloads[segment.value()],
                        ExpectPayload(layout, round.round(), segment), threads));
  const std::string& caps = round.header->step().deltas().caps();
  DISTRO_RETURN_IF_ERROR(ValidateDeltaResult(result, DeltaExtents(layout, as_dct, segment),
                                             BlockCaps(layout, segment, caps)));
  return result;
}

}  // namespace

absl::StatusOr<DecodedRound> DecodeRound(const Layout& layout, const CommittedRound& round,
                                         int threads) {
  const v1::StepParameters& step = round.header->step();
  DecodedRound decoded;
  if (step.has_deltas()) {
    const std::vector<bool> as_dct = AsDct(step.deltas(), layout);
    DISTRO_ASSIGN_OR_RETURN(
        decoded.deltas,
        DecodeSegments<DeltaResult>(layout, threads, [&](SegmentId segment, int threads_each) {
          return DecodeDeltas(layout, round, as_dct, segment, threads_each);
        }));
    return decoded;
  }
  const auto k = static_cast<int>(step.kept_per_block());
  DISTRO_ASSIGN_OR_RETURN(
      decoded.votes,
      DecodeSegments<Votes>(layout, threads, [&](SegmentId segment, int threads_each) {
        return DecodeVotes(*round.payloads[segment.value()],
                           ExpectPayload(layout, round.round(), segment, k), threads_each);
      }));
  return decoded;
}

}  // namespace distro
