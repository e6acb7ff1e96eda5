// The rounds of a run with signs, at the aggregator (docs/algorithm.md, "Combining").
#pragma once

#include <memory>

#include "common/method/base/round_method.h"
#include "common/model/layout/layout.h"
#include "distro/v1/run.pb.h"

namespace distro {

// `config` is complete.
std::shared_ptr<const RoundMethod> MakeSignRounds(const v1::RunConfig& config,
                                                  std::shared_ptr<const Layout> layout);

}  // namespace distro
