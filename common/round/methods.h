// The methods behind round_method.h. Included by it and them only.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/round/round_method.h"

namespace distro {

std::shared_ptr<const RoundMethod> MakeSignRounds(const v1::RunConfig& config,
                                                  std::shared_ptr<const Layout> layout);
// `as_dct` [tensors]: those that Muon steps.
std::shared_ptr<const RoundMethod> MakeDeltaRounds(const v1::RunConfig& config,
                                                   std::shared_ptr<const Layout> layout,
                                                   std::vector<bool> as_dct);

// The payload and its checksum.
void FinishResult(std::string payload, SegmentResult* result);

}  // namespace distro
