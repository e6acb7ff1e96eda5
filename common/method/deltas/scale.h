// Magnitudes of deltas as small integers (docs/algorithm.md, "Deltas"): the scale code that a
// worker sends with a block, and the level of each position of a result. A magnitude is a whole
// number of units of 2^-44. Pure functions, the same on every machine.
//
//   scale   M(c) = (8 + f) * 2^(E + 8) with c = 8 E + f, f below 8: 1.2e-10 to 0.47, in steps of 6
//           to 12 %
//   level   l of a block whose largest scale is c means M(c) * 2^(-l/2), l = 0..7
//
// Functions that a GPU also uses are constexpr (kernels/cuda/block.h).
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace distro {

inline constexpr int kScaleUnitBits = 44;  // a unit is 2^-44
inline constexpr int kScaleCodes = 256;
inline constexpr int kLevels = 8;

// T[l] = 2^16 * 2^(-l/2) to the nearest, halves up: a level in parts of its block's scale. Requires
// level < kLevels.
inline constexpr int kLevelBits = 16;
constexpr int64_t LevelPart(int level) {
  const int halvings = level / 2;
  const int64_t sixteenths = level % 2 == 0 ? 1048576 : 741455;  // of 2^16, and of 2^16 / sqrt(2)
  return (sixteenths + (int64_t{8} << halvings)) >> (4 + halvings);
}

// M(c). Requires a code below kScaleCodes.
constexpr int64_t ScaleOf(int code) { return int64_t{8 + code % 8} << (code / 8 + 8); }
inline constexpr int64_t kMaxScale = ScaleOf(kScaleCodes - 1);  // 15 * 2^39

// min(rne(|x| * 2^44), 2^44); 2^44 for NaN. Computed in integers, so the caller's rounding mode has
// no effect.
constexpr int64_t ScaleUnits(double x) {
  constexpr int kFraction = 52, kBias = 1023;
  const uint64_t bits = std::bit_cast<uint64_t>(x) & ~(uint64_t{1} << 63);
  const int exponent = static_cast<int>(bits >> kFraction);
  if (exponent >= kBias) return int64_t{1} << kScaleUnitBits;
  const int shift = kBias - exponent + kFraction - kScaleUnitBits;
  if (shift > kFraction + 1) return 0;  // less than half a unit
  const uint64_t leading = uint64_t{1} << kFraction;
  const uint64_t significand = leading | (bits & (leading - 1));
  const uint64_t below_half = (uint64_t{1} << (shift - 1)) - 1;
  return static_cast<int64_t>((significand + below_half + (significand >> shift & 1)) >> shift);
}

// The code of `count` elements whose magnitudes sum to `sum` units: the smallest c with 2 sum <=
// count * (M(c) + M(c + 1)), or the last code if there is none. nullopt if 2 sum < count * M(0):
// the record is empty. Requires 1 <= count <= 4096 and 0 <= sum <= count * 2^44.
constexpr std::optional<uint8_t> ChooseScale(int64_t sum, int count) {
  if (2 * sum < count * ScaleOf(0)) return std::nullopt;
  int low = 0, high = kScaleCodes - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (2 * sum <= count * (ScaleOf(middle) + ScaleOf(middle + 1)))
      high = middle;
    else
      low = middle + 1;
  }
  return static_cast<uint8_t>(low);
}

// The code of one number; 0 if ChooseScale returns none.
uint8_t ScaleCodeOf(double x);

// The least code with M(c) >= magnitude. Requires magnitude <= kMaxScale.
uint8_t CoveringScale(int64_t magnitude);

// The levels of magnitudes in a block with scale code `code`.
class LevelBounds {
 public:
  explicit LevelBounds(int code);

  // kLevels if it is dropped. Requires 0 <= magnitude <= M(code).
  uint8_t LevelOf(int64_t magnitude) const {
    const int32_t part = PartOf(magnitude);
    uint8_t level = 0;
    for (const int32_t least : least_) level += part < least ? 1 : 0;
    return level;
  }
  // The least magnitude of level `level` or a lower one. Requires level < kLevels.
  int64_t Least(int level) const {
    return ((int64_t{least_[level]} << shift_) + (1 << kLevelBits) - 1) >> kLevelBits;
  }
  // Sets levels[i] to that of magnitudes[i], i < count, as above.
  void LevelsOf(const int64_t* magnitudes, size_t count, uint8_t* levels) const;

 private:
  // The magnitude in parts of 2^(E - 8), rounded down, below 2^20: magnitude * 2^16 < M(c) * B[j]
  // exactly when it is below (8 + f) * B[j].
  int32_t PartOf(int64_t magnitude) const {
    return static_cast<int32_t>((magnitude << kLevelBits) >> shift_);
  }

  const int shift_;  // E + 8
  std::array<int32_t, kLevels> least_;
};

// The magnitude of a level, at most 20 significant bits. Requires level < kLevels.
constexpr int64_t LevelMagnitude(int code, int level) {
  return (ScaleOf(code) * LevelPart(level) + (int64_t{1} << (kLevelBits - 1))) >> kLevelBits;
}

}  // namespace distro
