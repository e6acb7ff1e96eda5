#include "common/model/decoder/rope.h"

#include <numbers>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/model/config_reader.h"

namespace distro {
namespace {

using nlohmann::json;

constexpr double kMaxTheta = 1e12;
constexpr double kMaxFactor = 1e6;
constexpr char kScaledType[] = "llama3";

double RequiredNumber(ConfigReader& reader, const char* key, double min) {
  if (reader.Find(key) == nullptr) reader.Refuse(key, "is missing; rope_type \"llama3\" needs it");
  return reader.Number(key, min, kMaxFactor, min);
}

RopeScaling ReadScaling(ConfigReader& reader) {
  RopeScaling scaling;
  scaling.factor = RequiredNumber(reader, "factor", 1);
  scaling.low_freq_factor = RequiredNumber(reader, "low_freq_factor", 1e-6);
  scaling.high_freq_factor = RequiredNumber(reader, "high_freq_factor", 1e-6);
  scaling.original_max_positions =
      static_cast<int>(reader.RequiredInteger("original_max_position_embeddings", 1, 1 << 24));
  if (reader.status().ok() && scaling.high_freq_factor <= scaling.low_freq_factor) {
    reader.Refuse("high_freq_factor",
                  absl::StrCat(scaling.high_freq_factor, " is not above low_freq_factor, ",
                               scaling.low_freq_factor));
  }
  return scaling;
}

// Accepts both names of the type's key; "type" is the older one.
bool IsScaled(ConfigReader& reader) {
  bool scaled = false;
  for (const char* key : {"rope_type", "type"}) {
    const std::string type = reader.String(key, "default");
    scaled |= type == kScaledType;
    if (type != "default" && type != kScaledType) {
      reader.RefuseValue(
          key, "only rope_type \"default\" and \"llama3\" are built: use another checkpoint");
    }
  }
  return scaled;
}

// Reads "rope_parameters" or "rope_scaling"; returns `fallback` if the key is absent.
absl::StatusOr<Rope> ReadObject(ConfigReader& config, const char* key, const Rope& fallback) {
  const json* object = config.Find(key);
  if (object == nullptr) return fallback;
  if (!object->is_object()) {
    config.Refuse(key, "is not an object");
    return fallback;
  }
  ConfigReader reader(*object, absl::StrCat("config.json: ", key, "."));
  Rope rope = {.theta = fallback.theta};
  if (IsScaled(reader)) rope.scaling = ReadScaling(reader);
  reader.RequireNumber("partial_rotary_factor", 1,
                       "only RoPE over the whole head is built: remove it");
  rope.theta = reader.Number("rope_theta", 1, kMaxTheta, fallback.theta);
  DISTRO_RETURN_IF_ERROR(reader.status());
  return rope;
}

json ScalingJson(const RopeScaling& scaling) {
  return {{"rope_type", kScaledType},
          {"factor", scaling.factor},
          {"low_freq_factor", scaling.low_freq_factor},
          {"high_freq_factor", scaling.high_freq_factor},
          {"original_max_position_embeddings", scaling.original_max_positions}};
}

}  // namespace

absl::StatusOr<Rope> ReadRope(ConfigReader& config, double default_theta) {
  const Rope plain = {.theta = config.Number("rope_theta", 1, kMaxTheta, default_theta)};
  DISTRO_ASSIGN_OR_RETURN(const Rope older, ReadObject(config, "rope_scaling", plain));
  DISTRO_ASSIGN_OR_RETURN(const Rope rope, ReadObject(config, "rope_parameters", older));
  if (config.Find("rope_theta") != nullptr && rope.theta != plain.theta) {
    config.Refuse("rope_theta",
                  absl::StrCat(plain.theta, " contradicts rope_parameters.rope_theta, ", rope.theta,
                               "; remove one of them"));
  }
  if (config.Find("rope_scaling") != nullptr && rope.scaling != older.scaling)
    config.Refuse("rope_scaling", "contradicts rope_parameters; remove one of them");
  return rope;
}

void WriteRope(const Rope& rope, json* config) {
  json parameters = {{"rope_type", "default"}};
  if (rope.scaling.has_value()) {
    parameters = ScalingJson(*rope.scaling);
    (*config)["rope_scaling"] = parameters;
  }
  parameters["rope_theta"] = rope.theta;
  (*config)["rope_parameters"] = parameters;
  (*config)["rope_theta"] = rope.theta;
}

float ScaledFrequency(const RopeScaling& scaling, float frequency) {
  const auto positions = static_cast<float>(scaling.original_max_positions);
  const auto low = static_cast<float>(scaling.low_freq_factor);
  const auto high = static_cast<float>(scaling.high_freq_factor);
  const auto factor = static_cast<float>(scaling.factor);
  const float wavelength = 2 * std::numbers::pi_v<float> / frequency;
  if (wavelength < positions / high) return frequency;
  if (wavelength > positions / low) return frequency / factor;
  const float smooth = (positions / wavelength - low) / (high - low);
  return (1 - smooth) * frequency / factor + smooth * frequency;
}

}  // namespace distro
