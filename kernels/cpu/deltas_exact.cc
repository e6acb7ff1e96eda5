#include "kernels/cpu/deltas_exact.h"

namespace distro::exact {

void MakeSteps(float alpha, Steps* steps) {
  const float unit = alpha * 0x1p-44f;
  for (int code = 0; code < kScaleCodes; ++code) {
    for (int level = 0; level < kLevels; ++level)
      (*steps)[code][level] = static_cast<float>(LevelMagnitude(code, level)) * unit;
  }
}

float FrequencyStep(float alpha, int code, int shift) {
  const float unit = alpha * 0x1p-44f;
  const float scale = static_cast<float>(ScaleOf(code)) * unit;
  return scale * (static_cast<float>(1 << shift) * 0x1p-36f);
}

void ApplyBlock(const DeltaResult& result, int64_t block, const Steps& steps, int64_t stride,
                float* parameters) {
  const std::array<float, kLevels>& of_level = steps[result.codes[block]];
  for (uint32_t i = result.offsets[block]; i < result.offsets[block + 1]; ++i) {
    const int position = result.positions[i];
    const float step = of_level[result.levels[i]];
    float& p = parameters[position / kBlockSide * stride + position % kBlockSide];
    p = result.signs[i] < 0 ? p + step : p - step;
  }
}

}  // namespace distro::exact
