#include "common/round/muon_tensors.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/model/architecture.h"
#include "common/model/listed_tensors.h"

namespace distro {

absl::StatusOr<std::vector<bool>> MuonTensorsOf(const v1::RunConfig& config, const Layout& layout,
                                                absl::string_view model_config_json) {
  const bool muon = config.inner_optimizer() == v1::INNER_OPTIMIZER_MUON;
  const std::vector<bool> none(layout.tensors().size(), false);
  if (config.workers() == v1::WORKERS_PYTHON) {
    if (!muon) return none;
    return ListedTensorsInside(layout, model_config_json);
  }
  const absl::StatusOr<std::shared_ptr<const Architecture>> model =
      ParseModelConfig(model_config_json);
  if (!model.ok()) {
    return WithMessage(model.status(),
                       absl::StrCat(model.status().message(),
                                    " (a run of any other model has \"workers\": \"python\")"));
  }
  DISTRO_ASSIGN_OR_RETURN(const Manifest manifest, Manifest::Create((*model)->Tensors()));
  if (manifest.hash() != layout.manifest().hash()) {
    return absl::InvalidArgumentError(
        "config.json: the model that it describes has other tensors than the snapshot");
  }
  return muon ? TensorsInside(layout, UnitTensors(**model, manifest)) : none;
}

}  // namespace distro
