#include "worker/optimizer/update_rule.h"

namespace distro::worker {

UpdateRuleKind RuleOf(const v1::RunConfig& config, const Layout* layout,
                      const Architecture& model) {
  return config.method() == v1::METHOD_DELTAS ? LocalDeltas(config, layout, model) : kSignMomentum;
}

}  // namespace distro::worker
