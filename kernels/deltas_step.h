// Step sizes for applying a deltas result (docs/algorithm.md, "Every replica"), on every backend
// including GPUs: no tables, and every product is rounded separately. Pure functions.
#pragma once

#include <cstdint>

#include "common/method/deltas/scale.h"
#include "common/method/signs/votes.h"

namespace distro {

// a32, exact: alpha is 0 or at least 2^-82.
constexpr float UnitStep(float alpha) { return alpha * 0x1p-44f; }

// step[cmax][l] of elements.
constexpr float ElementStep(float alpha, int code, int level) {
  return static_cast<float>(LevelMagnitude(code, level)) * UnitStep(alpha);
}

// |V| of an entry of level l: (T[l] + 2^(h-1)) >> h. Requires 1 <= shift <= 14.
constexpr int FrequencyPart(int level, int shift) {
  return static_cast<int>((LevelPart(level) + (int64_t{1} << (shift - 1))) >> shift);
}

// h of a block with counts[l] entries of level l, 4096 at most in all.
constexpr int FrequencyShift(const uint32_t counts[kLevels]) {
  for (int shift = 1;; ++shift) {
    int64_t sum = 0;
    for (int level = 0; level < kLevels; ++level)
      sum += int64_t{counts[level]} * FrequencyPart(level, shift);
    if (sum <= kMaxVotesPerBlock) return shift;
  }
}

// w: the step for one unit of IDCTint(V).
constexpr float FrequencyStep(float alpha, int code, int shift) {
  const float scale = static_cast<float>(ScaleOf(code)) * UnitStep(alpha);
  return scale * (static_cast<float>(1 << shift) * 0x1p-36f);
}

}  // namespace distro
