// Payloads in the form that a round passes to its method. Pure.
#pragma once

#include <vector>

#include "common/method/base/round_method.h"

namespace distro::testing {

// All of weight 1, or of `weights`.
inline std::vector<SentPayload> Weighted(const std::vector<SharedBytes>& payloads,
                                         const std::vector<int>& weights = {}) {
  std::vector<SentPayload> sent;
  for (size_t i = 0; i < payloads.size(); ++i)
    sent.push_back({payloads[i], weights.empty() ? 1 : weights[i]});
  return sent;
}

}  // namespace distro::testing
