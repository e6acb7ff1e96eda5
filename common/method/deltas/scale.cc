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

int LevelOf(int64_t magnitude, int code) {
  const int64_t scale = ScaleOf(code);
  // Both sides are below 2^43 * 2^16, so the products fit.
  return static_cast<int>(std::count_if(kBounds.begin(), kBounds.end(), [&](int64_t bound) {
    return (magnitude << kLevelBits) < scale * bound;
  }));
}

}  // namespace distro
