#include "common/method/methods.h"

#include "common/method/base/decode_segments.h"
#include "common/method/deltas/decode_round.h"
#include "common/method/deltas/method.h"
#include "common/method/signs/decode_round.h"
#include "common/method/signs/method.h"

namespace distro {

const Method& MethodOf(v1::Method method) {
  switch (method) {
    case v1::METHOD_DELTAS:
      return Deltas();
    case v1::METHOD_SIGNS:
    case v1::METHOD_UNSPECIFIED:
    case v1::Method_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::Method_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return Signs();
}

const Method& MethodOf(const v1::RunConfig& config) { return MethodOf(config.method()); }

v1::Method MethodNumberOf(const v1::StepParameters& step) {
  switch (step.parameters_case()) {
    case v1::StepParameters::kDeltas:
      return v1::METHOD_DELTAS;
    case v1::StepParameters::PARAMETERS_NOT_SET:
      break;
  }
  return v1::METHOD_SIGNS;
}

const Method& MethodOf(const v1::StepParameters& step) { return MethodOf(MethodNumberOf(step)); }

absl::Span<const Method* const> AllMethods() {
  static const Method* const kAll[] = {&Deltas(), &Signs()};
  return kAll;
}

absl::StatusOr<DecodedRound> DecodeRound(const Layout& layout, const v1::RoundHeader& header,
                                         absl::Span<const SharedBytes> payloads, int threads) {
  const RoundPayloads round = {.layout = layout, .header = header, .bytes = payloads};
  switch (MethodNumberOf(header.step())) {
    case v1::METHOD_DELTAS:
      return DecodeDeltaRound(round, threads);
    case v1::METHOD_SIGNS:
    case v1::METHOD_UNSPECIFIED:
    case v1::Method_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::Method_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return DecodeSignRound(round, threads);
}

}  // namespace distro
