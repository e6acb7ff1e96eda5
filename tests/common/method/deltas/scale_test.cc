#include "common/method/deltas/scale.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

TEST(ScaleTest, CodesAscendInStepsOfSixToTwelvePercent) {
  EXPECT_EQ(ScaleOf(0), 2048);
  EXPECT_EQ(ScaleOf(7), 15 * 256);
  EXPECT_EQ(ScaleOf(8), 16 * 256);
  EXPECT_EQ(ScaleOf(255), int64_t{15} << 39);
  for (int code = 1; code < kScaleCodes; ++code) {
    const double step = static_cast<double>(ScaleOf(code)) / static_cast<double>(ScaleOf(code - 1));
    EXPECT_GT(step, 1.06) << code;
    EXPECT_LE(step, 1.125) << code;
  }
}

TEST(ScaleTest, UnitsAreRoundedToNearestEvenAndAtMostOne) {
  const double unit = std::ldexp(1.0, -44);
  EXPECT_EQ(ScaleUnits(0), 0);
  EXPECT_EQ(ScaleUnits(-3 * unit), 3);
  EXPECT_EQ(ScaleUnits(2.5 * unit), 2);
  EXPECT_EQ(ScaleUnits(3.5 * unit), 4);
  EXPECT_EQ(ScaleUnits(-17), int64_t{1} << 44);
  for (const float x : {INFINITY, -INFINITY, NAN, -NAN, 1.0f})
    EXPECT_EQ(ScaleUnits(x), int64_t{1} << 44);
  for (const double x : {-0.0, 0x1p-149, 0x1p-1074, 0x1p-46, 0x1p-45, 0x1.fffffffffffffp-46})
    EXPECT_EQ(ScaleUnits(x), 0) << x;
  EXPECT_EQ(ScaleUnits(0x1.0000000000001p-45), 1) << "just above half a unit";
}

// Of every exponent, with random digits and with digits that are a tie.
TEST(ScaleTest, UnitsAreThoseOfTheDefinitionForEverySize) {
  for (int exponent = -60; exponent < 3; ++exponent) {
    for (uint64_t i = 0; i < 100; ++i) {
      const auto digits = static_cast<double>(SplitMix64(1, i) >> (i % 2 == 0 ? 11 : 44) | 1);
      const double x = std::ldexp(digits, exponent - (i % 2 == 0 ? 53 : 20));
      const auto want = std::nearbyint(std::min(1.0, x) * 0x1p44);
      ASSERT_EQ(ScaleUnits(x), static_cast<int64_t>(want)) << x;
      ASSERT_EQ(ScaleUnits(-x), static_cast<int64_t>(want)) << x;
    }
  }
}

// The definition, code by code.
std::optional<uint8_t> SlowScale(int64_t sum, int count) {
  if (2 * sum < count * ScaleOf(0)) return std::nullopt;
  for (int code = 0; code < kScaleCodes - 1; ++code) {
    if (2 * sum <= count * (ScaleOf(code) + ScaleOf(code + 1))) return static_cast<uint8_t>(code);
  }
  return uint8_t{255};
}

TEST(ScaleTest, ChoosesNearestCodeToMean) {
  for (const int count : {1, 8, 32, 4096}) {
    for (int code = 0; code < kScaleCodes - 1; ++code) {
      const int64_t middle = count * (ScaleOf(code) + ScaleOf(code + 1)) / 2;
      for (const int64_t sum : {middle - 1, middle, middle + 1, count * ScaleOf(code)})
        EXPECT_EQ(ChooseScale(sum, count), SlowScale(sum, count)) << sum << " of " << count;
    }
    EXPECT_EQ(ChooseScale(count * (int64_t{1} << 44), count), 255);
  }
}

TEST(ScaleTest, BelowHalfTheSmallestScaleARecordIsEmpty) {
  EXPECT_EQ(ChooseScale(0, 1), std::nullopt);
  EXPECT_EQ(ChooseScale(1023, 1), std::nullopt);
  EXPECT_EQ(ChooseScale(1024, 1), 0);
  EXPECT_EQ(ChooseScale(32 * 1024 - 1, 32), std::nullopt);
  EXPECT_EQ(ChooseScale(32 * 1024, 32), 0);
}

TEST(ScaleTest, CoversWithLeastCode) {
  EXPECT_EQ(CoveringScale(0), 0);
  for (int code = 0; code < kScaleCodes; ++code) {
    EXPECT_EQ(CoveringScale(ScaleOf(code)), code);
  }
  for (int code = 1; code < kScaleCodes; ++code)
    EXPECT_EQ(CoveringScale(ScaleOf(code - 1) + 1), code);
}

TEST(LevelTest, IsNearestHalfOctaveBelowScale) {
  for (const int code : {40, 131, 255}) {
    const auto scale = static_cast<double>(ScaleOf(code));
    for (int tenth = 0; tenth < 50; ++tenth) {
      const double octaves = 0.1 * tenth + 0.007;  // off the bounds between levels
      const auto magnitude = static_cast<int64_t>(scale * std::exp2(-octaves));
      const int level = LevelBounds(code).LevelOf(magnitude);
      ASSERT_EQ(level, std::min(8L, std::lround(2 * octaves))) << octaves;
      if (level == kLevels) continue;
      const auto meant = static_cast<double>(LevelMagnitude(code, level));
      EXPECT_NEAR(meant / (scale * std::exp2(-0.5 * level)), 1, 1e-4);
      EXPECT_NEAR(meant / static_cast<double>(magnitude), 1, 0.19);
    }
  }
}

TEST(LevelTest, OfManyIsThatOfTheDefinition) {
  constexpr int64_t kBounds[] = {55109, 38968, 27554, 19484, 13777, 9742, 6889, 4871};
  for (const int code : {0, 7, 8, 63, 64, 65, 120, 255}) {
    std::vector<int64_t> magnitudes = {0, 1, ScaleOf(code) - 1, ScaleOf(code)};
    for (const int64_t bound : kBounds) {
      const int64_t least = ScaleOf(code) * bound >> kLevelBits;
      for (int64_t off = -2; off <= 2; ++off)
        magnitudes.push_back(std::max<int64_t>(0, least + off));
    }
    std::vector<uint8_t> levels(magnitudes.size());
    LevelBounds(code).LevelsOf(magnitudes.data(), magnitudes.size(), levels.data());
    for (size_t i = 0; i < magnitudes.size(); ++i) {
      const auto expected = std::ranges::count_if(kBounds, [&](int64_t bound) {
        return magnitudes[i] << kLevelBits < ScaleOf(code) * bound;
      });
      EXPECT_EQ(levels[i], expected) << magnitudes[i] << " at code " << code;
      EXPECT_EQ(LevelBounds(code).LevelOf(magnitudes[i]), expected);
    }
  }
}

TEST(LevelTest, IsZeroForTheLargest) {
  for (int code = 1; code < kScaleCodes; ++code) {
    EXPECT_EQ(LevelBounds(code).LevelOf(ScaleOf(code)), 0);
    EXPECT_EQ(LevelBounds(code).LevelOf(ScaleOf(code - 1) + 1), 0)
        << "the least that this code covers";
  }
  EXPECT_EQ(LevelBounds(0).LevelOf(1), kLevels);
}

TEST(LevelTest, FitsTwentySignificantBits) {
  for (int code = 0; code < kScaleCodes; ++code) {
    for (int level = 0; level < kLevels; ++level) {
      const int64_t magnitude = LevelMagnitude(code, level);
      EXPECT_GT(magnitude, 0);
      EXPECT_EQ(static_cast<int64_t>(static_cast<float>(magnitude)), magnitude);
      int64_t odd = magnitude;
      while (odd % 2 == 0) odd /= 2;
      EXPECT_LT(odd, 1 << 20);
    }
    EXPECT_EQ(LevelMagnitude(code, 0), ScaleOf(code));
  }
}

}  // namespace
}  // namespace distro
