#include "common/method/deltas/step.h"

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/bitmap.h"
#include "common/base/status_util.h"
#include "common/method/base/learning_rate.h"
#include "common/method/base/method.h"

namespace distro {
namespace {

absl::Status CheckBitmap(const std::string& bits, size_t count) {
  if (bits.size() != BitmapBytes(count))
    return BadField("as_dct", absl::StrCat(bits.size(), " bytes for ", count, " tensors"));
  for (size_t i = count; i < bits.size() * 8; ++i) {
    if (BitOf(bits, i)) return BadField("as_dct", absl::StrCat("unused bit ", i, " is set"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<float> LocalRates(const v1::RunConfig& config, RoundId round,
                              const v1::Extension* extension) {
  std::vector<float> rates;
  for (uint64_t h = 0; h < config.local_steps(); ++h)
    rates.push_back(LearningRate(config, round.value() * config.local_steps() + h, extension));
  return rates;
}

absl::Status CheckDeltaParameters(const v1::DeltaParameters& deltas, const Layout& layout) {
  const auto steps = static_cast<uint32_t>(deltas.inner_rate_bits_size());
  if (steps < 1 || steps > kMaxLocalSteps)
    return BadField("inner_rate_bits", absl::StrCat(steps, " of them, 1 to ", kMaxLocalSteps));
  for (const float rate : InnerRates(deltas)) {
    if (!std::isfinite(rate) || std::signbit(rate))
      return BadField("inner_rate_bits", absl::StrCat(rate, " is not finite and at least 0"));
  }
  const float outer = OuterRate(deltas);
  const bool allowed = outer >= kLeastOuterRate && outer <= kLargestOuterRate;
  if (!allowed && deltas.outer_rate_bits() != 0)
    return BadField("outer_rate_bits", absl::StrCat(outer, " is neither 0 nor 2^-82 to 2"));
  if (!(deltas.error_decay() >= 0 && deltas.error_decay() < 1))
    return BadField("error_decay", absl::StrCat(deltas.error_decay(), " is outside 0 to below 1"));
  const size_t tensors = layout.tensors().size();
  if (deltas.caps().size() != tensors)
    return BadField("caps", absl::StrCat(deltas.caps().size(), " for ", tensors, " tensors"));
  return CheckBitmap(deltas.as_dct(), tensors);
}

std::vector<float> InnerRates(const v1::DeltaParameters& deltas) {
  std::vector<float> rates;
  for (const uint32_t bits : deltas.inner_rate_bits()) rates.push_back(std::bit_cast<float>(bits));
  return rates;
}

float OuterRate(const v1::DeltaParameters& deltas) {
  return std::bit_cast<float>(deltas.outer_rate_bits());
}

bool IsAsDct(const v1::DeltaParameters& deltas, int tensor) {
  return BitOf(deltas.as_dct(), tensor);
}

std::vector<bool> AsDct(const v1::DeltaParameters& deltas, const Layout& layout) {
  std::vector<bool> as_dct;
  for (int i = 0; i < static_cast<int>(layout.tensors().size()); ++i)
    as_dct.push_back(IsAsDct(deltas, i));
  return as_dct;
}

}  // namespace distro
