// The rotary position embedding in a decoder's config.json: a base, and for Llama 3.1 to 3.3 the
// scaling of the frequencies for contexts longer than in pretraining (rope_type "llama3").
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "nlohmann/json_fwd.hpp"

namespace distro {

class ConfigReader;

// rope_type "llama3". Wavelengths, in positions, above original_max_positions / low_freq_factor are
// multiplied by `factor`; those below original_max_positions / high_freq_factor stay; between the
// two the scaling is interpolated.
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

// Reads rope_parameters (transformers 5), or rope_theta and rope_scaling (older versions). Absent:
// theta `default_theta`, unscaled. InvalidArgument names the key and the remedy: another rope_type,
// partial RoPE, a value out of range, or a contradiction between old and new keys.
absl::StatusOr<Rope> ReadRope(ConfigReader& config, double default_theta);

// Sets keys from which ReadRope and every version of transformers read the same.
void WriteRope(const Rope& rope, nlohmann::json* config);

// The scaled frequency, in radians per position, of an unscaled one. In f32, operation by operation
// as transformers computes it (_compute_llama3_parameters).
float ScaledFrequency(const RopeScaling& scaling, float frequency);

}  // namespace distro
