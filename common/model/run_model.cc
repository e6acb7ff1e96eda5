#include "common/model/run_model.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/model/model_tensors.h"

namespace distro {

absl::StatusOr<std::shared_ptr<const Architecture>> ModelOfRun(
    const Layout& layout, absl::string_view model_config_json) {
  absl::StatusOr<std::shared_ptr<const Architecture>> model = ParseModelConfig(model_config_json);
  if (!model.ok()) {
    return WithMessage(model.status(),
                       absl::StrCat(model.status().message(),
                                    " (a run of any other model has \"workers\": \"python\")"));
  }
  DISTRO_RETURN_IF_ERROR(CheckModelTensors(**model, layout.manifest()));
  return model;
}

}  // namespace distro
