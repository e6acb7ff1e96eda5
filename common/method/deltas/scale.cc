#include "common/method/deltas/scale.h"

#include <algorithm>
#include <array>

namespace distro {
namespace {

// Of 2^16: the geometric means of neighbouring levels, 2^(-(2l + 1)/4).
constexpr std::array<int64_t, kLevels> kBounds = {55109, 38968, 27554, 19484,
                                                  13777, 9742,  6889,  4871};

}  // namespace

uint8_t ScaleCodeOf(double x) { return ChooseScale(ScaleUnits(x), 1).value_or(0); }

uint8_t CoveringScale(int64_t magnitude) {
  int low = 0, high = kScaleCodes - 1;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (ScaleOf(middle) >= magnitude)
      high = middle;
    else
      low = middle + 1;
  }
  return static_cast<uint8_t>(low);
}

LevelBounds::LevelBounds(int code) : shift_(code / 8 + 8) {
  for (size_t j = 0; j < least_.size(); ++j)
    least_[j] = static_cast<int32_t>((8 + code % 8) * kBounds[j]);
}

void LevelBounds::LevelsOf(const int64_t* magnitudes, size_t count, uint8_t* levels) const {
  using Lanes = int32_t __attribute__((vector_size(16)));
  constexpr size_t kLanes = sizeof(Lanes) / sizeof(int32_t);
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Lanes parts, below = {};
    for (size_t lane = 0; lane < kLanes; ++lane) parts[lane] = PartOf(magnitudes[i + lane]);
    for (const int32_t least : least_) below += parts < least;  // -1 where it is
    for (size_t lane = 0; lane < kLanes; ++lane)
      levels[i + lane] = static_cast<uint8_t>(-below[lane]);
  }
  for (; i < count; ++i) levels[i] = LevelOf(magnitudes[i]);
}

}  // namespace distro
