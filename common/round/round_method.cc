#include "common/round/round_method.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/codec/payload.h"
#include "common/round/methods.h"
#include "common/round/muon_tensors.h"

namespace distro {

void FinishResult(std::string payload, SegmentResult* result) {
  result->checksum = PayloadChecksum(payload);
  result->payload = std::make_shared<const std::string>(std::move(payload));
}

absl::StatusOr<std::shared_ptr<const RoundMethod>> MakeRoundMethod(
    const v1::RunConfig& config, std::shared_ptr<const Layout> layout,
    absl::string_view model_config_json) {
  if (config.method() != v1::METHOD_DELTAS) return MakeSignRounds(config, std::move(layout));
  DISTRO_ASSIGN_OR_RETURN(std::vector<bool> as_dct,
                          MuonTensorsOf(config, *layout, model_config_json));
  return MakeDeltaRounds(config, std::move(layout), std::move(as_dct));
}

}  // namespace distro
