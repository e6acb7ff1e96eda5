#include "worker/rules/update_rule.h"

#include <utility>

#include "common/base/status_macros.h"
#include "common/method/deltas/muon_tensors.h"

namespace distro::worker {

UpdateRuleKind RuleOf(const v1::RunConfig& config, const Layout* layout,
                      const Architecture& model) {
  return config.method() == v1::METHOD_DELTAS ? LocalDeltas(config, layout, model) : kSignMomentum;
}

absl::StatusOr<UpdateRuleKind> RuleOfModule(const v1::RunConfig& config, const Layout* layout,
                                            absl::string_view model_config_json) {
  if (config.method() != v1::METHOD_DELTAS) return kSignMomentum;
  DISTRO_ASSIGN_OR_RETURN(std::vector<bool> by_muon,
                          MuonTensorsOf(config, *layout, model_config_json));
  return LocalDeltas(config, layout, std::move(by_muon), LocalStepsBy::kCaller);
}

}  // namespace distro::worker
