// The rotary position embedding of a Llama's config.json: a base, and for Llama 3.1 to 3.3 how the
// frequencies are stretched for contexts longer than those of the pretraining (rope_type "llama3").
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace distro {

class ConfigReader;

// rope_type "llama3". Wavelengths are in positions: those above original_max_positions /
// low_freq_factor are `factor` times as long, those below original_max_positions / high_freq_factor
// stay, and between the two the one goes over into the other.
struct RopeScaling {
  double factor = 1;            // 1 or more
  double low_freq_factor = 1;   // above 0
  double high_freq_factor = 4;  // above low_freq_factor
  int original_max_positions = 0;

  bool operator==(const RopeScaling&) const = default;
};

struct Rope {
  double theta = 0;
  std::optional<RopeScaling> scaling = {};  // none: rope_type "default"

  bool operator==(const Rope&) const = default;
};

// From rope_parameters (transformers 5), or rope_theta and rope_scaling (older). Absent: theta
// 10000, unscaled. InvalidArgument names the key and the remedy: another rope_type, partial RoPE, a
// value out of range, or the two ways contradicting each other.
absl::StatusOr<Rope> ReadRope(ConfigReader& config);

// Sets the keys that both ReadRope and every transformers read back as the same.
void WriteRope(const Rope& rope, nlohmann::json* config);

// The frequency, in radians a position, that the scaling makes of one of an unscaled RoPE. In f32,
// operation by operation as transformers computes it (_compute_llama3_parameters).
float ScaledFrequency(const RopeScaling& scaling, float frequency);

}  // namespace distro
