// The rounds of a run with deltas, at the aggregator (docs/algorithm.md, "Deltas").
#pragma once

#include <memory>
#include <vector>

#include "common/method/base/round_method.h"
#include "common/model/layout/layout.h"
#include "distro/v1/run.pb.h"

namespace distro {

// `config` is complete. `as_dct` [tensors]: those that Muon steps.
std::shared_ptr<const RoundMethod> MakeDeltaRounds(const v1::RunConfig& config,
                                                   std::shared_ptr<const Layout> layout,
                                                   std::vector<bool> as_dct);

}  // namespace distro
