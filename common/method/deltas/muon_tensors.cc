#include "common/method/deltas/muon_tensors.h"

#include <memory>

#include "common/base/status_macros.h"
#include "common/model/listed_tensors.h"
#include "common/model/run_model.h"

namespace distro {

absl::StatusOr<std::vector<bool>> MuonTensorsOf(const v1::RunConfig& config, const Layout& layout,
                                                absl::string_view model_config_json) {
  const bool muon = config.inner_optimizer() == v1::INNER_OPTIMIZER_MUON;
  const std::vector<bool> none(layout.tensors().size(), false);
  if (config.workers() == v1::WORKERS_PYTHON) {
    if (!muon) return none;
    return ListedTensorsInside(layout, model_config_json);
  }
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<const Architecture> model,
                          ModelOfRun(layout, model_config_json));
  return muon ? TensorsInside(layout, UnitTensors(*model, layout.manifest())) : none;
}

}  // namespace distro
