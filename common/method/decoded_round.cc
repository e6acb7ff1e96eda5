#include "common/method/decoded_round.h"

#include <algorithm>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/method/deltas/caps.h"
#include "common/method/deltas/payload.h"
#include "common/method/deltas/step.h"
#include "common/method/methods.h"
#include "common/method/signs/payload.h"

namespace distro {
namespace {

// Decodes segments in parallel; if there are fewer than threads, several threads share a segment.
template <typename Result>
absl::StatusOr<DecodedRound> DecodeSegments(
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

// A round's payloads, and what they are checked against.
struct RoundPayloads {
  const Layout& layout;
  const v1::RoundHeader& header;
  absl::Span<const SharedBytes> bytes;  // [segments]

  const std::string& Of(SegmentId segment) const { return *bytes[segment.value()]; }
  PayloadExpectation Expect(SegmentId segment) const {
    return ExpectPayload(layout, RoundId(header.round()), segment,
                         static_cast<int>(header.step().kept_per_block()));
  }
};

absl::StatusOr<DecodedRound> DecodeDeltas(const RoundPayloads& payloads, int threads) {
  const v1::DeltaParameters& step = payloads.header.step().deltas();
  const std::vector<bool> as_dct = AsDct(step, payloads.layout);
  return DecodeSegments<DeltaResult>(
      payloads.layout, threads,
      [&](SegmentId segment, int threads_each) -> absl::StatusOr<DeltaResult> {
        DISTRO_ASSIGN_OR_RETURN(
            DeltaResult result,
            DecodeDeltaResult(payloads.Of(segment), payloads.Expect(segment), threads_each));
        DISTRO_RETURN_IF_ERROR(
            ValidateDeltaResult(result, DeltaExtents(payloads.layout, as_dct, segment),
                                BlockCaps(payloads.layout, segment, step.caps())));
        return result;
      });
}

absl::StatusOr<DecodedRound> DecodeSigns(const RoundPayloads& payloads, int threads) {
  return DecodeSegments<Votes>(payloads.layout, threads, [&](SegmentId segment, int threads_each) {
    return DecodeVotes(payloads.Of(segment), payloads.Expect(segment), threads_each);
  });
}

}  // namespace

absl::StatusOr<DecodedRound> DecodeRound(const Layout& layout, const v1::RoundHeader& header,
                                         absl::Span<const SharedBytes> payloads, int threads) {
  const RoundPayloads round = {.layout = layout, .header = header, .bytes = payloads};
  switch (MethodNumberOf(header.step())) {
    case v1::METHOD_DELTAS:
      return DecodeDeltas(round, threads);
    case v1::METHOD_SIGNS:
    case v1::METHOD_UNSPECIFIED:
    case v1::Method_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::Method_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return DecodeSigns(round, threads);
}

}  // namespace distro
