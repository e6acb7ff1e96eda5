#include "common/run/round/model_check.h"

#include "common/base/status_macros.h"
#include "common/model/run_model.h"

namespace distro {

absl::Status CheckModelOfRun(const v1::RunConfig& config, const Layout& layout,
                             absl::string_view model_config_json) {
  if (config.workers() == v1::WORKERS_PYTHON) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<const Architecture> model,
                          ModelOfRun(layout, model_config_json));
  return CheckSequenceLength(config.sequence_length(), model->sizes());
}

}  // namespace distro
