// Replaces the update of a hostile worker of the lab. The worker's own error feedback does not
// change, so that it continues to choose positions as others do. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "bench/convergence/deltas_settings.h"
#include "common/method/deltas/update.h"
#include "common/model/layout/layout.h"

namespace distro::worker {

struct HostileRound {
  uint64_t round = 0;
  uint64_t seed = 0;                                 // of random signs
  std::vector<uint8_t> caps = {};                    // [tensors]
  std::vector<std::optional<uint8_t>> medians = {};  // [tensors], of the largest codes before
};

// Requires settings.attack.
void Attack(const DeltasSettings& settings, const Layout& layout, const HostileRound& round,
            DeltaUpdate* update);

// The same for signs alone: "inverted" (also as a prefix of the name) flips every sign, "random"
// flips each with probability 1/2, any other attack flips none.
void AttackSigns(const std::string& attack, uint64_t seed, absl::Span<int8_t> signs);

}  // namespace distro::worker
