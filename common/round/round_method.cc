#include "common/round/round_method.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/codec/payload.h"
#include "common/model/architecture.h"
#include "common/round/methods.h"

namespace distro {
namespace {

absl::StatusOr<std::vector<bool>> TensorsAsDct(const v1::RunConfig& config, const Layout& layout,
                                               absl::string_view model_config_json) {
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<const Architecture> model,
                          ParseModelConfig(model_config_json));
  DISTRO_ASSIGN_OR_RETURN(const Manifest manifest, Manifest::Create(model->Tensors()));
  if (manifest.hash() != layout.manifest().hash()) {
    return absl::InvalidArgumentError(
        "config.json: the model that it describes has other tensors than the snapshot");
  }
  if (config.inner_optimizer() != v1::INNER_OPTIMIZER_MUON)
    return std::vector<bool>(layout.tensors().size(), false);
  return TensorsInside(layout, UnitTensors(*model, manifest));
}

}  // namespace

void FinishResult(std::string payload, SegmentResult* result) {
  result->checksum = PayloadChecksum(payload);
  result->payload = std::make_shared<const std::string>(std::move(payload));
}

absl::StatusOr<std::shared_ptr<const RoundMethod>> MakeRoundMethod(
    const v1::RunConfig& config, std::shared_ptr<const Layout> layout,
    absl::string_view model_config_json) {
  if (config.method() != v1::METHOD_DELTAS) return MakeSignRounds(config, std::move(layout));
  DISTRO_ASSIGN_OR_RETURN(std::vector<bool> as_dct,
                          TensorsAsDct(config, *layout, model_config_json));
  return MakeDeltaRounds(config, std::move(layout), std::move(as_dct));
}

}  // namespace distro
