#include "worker/rules/update_rule.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/method/deltas/muon_tensors.h"

namespace distro::worker {

UpdateRuleKind RuleOf(const v1::RunConfig& config, const Layout* layout,
                      const Architecture& model) {
  switch (config.method()) {
    case v1::METHOD_DELTAS:
      return LocalDeltas(config, layout, model);
    case v1::METHOD_SIGNS:
    case v1::METHOD_UNSPECIFIED:
    case v1::Method_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::Method_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return kSignMomentum;
}

absl::StatusOr<UpdateRuleKind> RuleOfModule(const v1::RunConfig& config, const Layout* layout,
                                            absl::string_view model_config_json) {
  switch (config.method()) {
    case v1::METHOD_DELTAS: {
      DISTRO_ASSIGN_OR_RETURN(std::vector<bool> by_muon,
                              MuonTensorsOf(config, *layout, model_config_json));
      return LocalDeltas(config, layout, std::move(by_muon), LocalStepsBy::kCaller);
    }
    case v1::METHOD_SIGNS:
    case v1::METHOD_UNSPECIFIED:
    case v1::Method_INT_MIN_SENTINEL_DO_NOT_USE_:
    case v1::Method_INT_MAX_SENTINEL_DO_NOT_USE_:
      break;
  }
  return kSignMomentum;
}

}  // namespace distro::worker
