#include "common/method/base/learning_rate.h"

#include <cmath>
#include <numbers>

#include "gtest/gtest.h"

namespace distro {
namespace {

v1::RunConfig Config() {
  v1::RunConfig config;
  config.set_rounds(25000);
  config.set_peak_learning_rate(4e-4);
  config.set_min_learning_rate(4e-5);
  config.set_warmup_rounds(400);
  return config;
}

TEST(LearningRateTest, RisesLinearlyToThePeak) {
  EXPECT_EQ(LearningRate(Config(), 0), static_cast<float>(4e-4 / 400));
  EXPECT_EQ(LearningRate(Config(), 199), static_cast<float>(4e-4 * 200 / 400));
  EXPECT_EQ(LearningRate(Config(), 399), 4e-4f);
  EXPECT_EQ(LearningRate(Config(), 400), 4e-4f);
}

TEST(LearningRateTest, FallsAlongACosineToTheMinimum) {
  // Half of the cosine's way: the mean of both ends.
  EXPECT_FLOAT_EQ(LearningRate(Config(), 400 + 12300), 2.2e-4f);
  // A third: 1 + cos(pi / 3) = 1.5.
  EXPECT_FLOAT_EQ(LearningRate(Config(), 400 + 8200), 4e-5f + 3.6e-4f * 0.75f);
  const double angle = std::numbers::pi * 24599 / 24600;
  EXPECT_EQ(LearningRate(Config(), 24999),
            static_cast<float>(4e-5 + (4e-4 - 4e-5) * (1 + std::cos(angle)) / 2));
}

TEST(LearningRateTest, StartsAtThePeakWithoutWarmup) {
  v1::RunConfig config = Config();
  config.set_warmup_rounds(0);
  EXPECT_EQ(LearningRate(config, 0), 4e-4f);
}

TEST(ExtendScheduleTest, ContinuesRateToLaterEnd) {
  const v1::Extension extension = ExtendSchedule(Config(), nullptr, RoundId(10000), 50000);
  EXPECT_EQ(extension.rounds(), 50000u);
  EXPECT_EQ(extension.from_round(), 10000u);
  EXPECT_EQ(LearningRate(Config(), 9999, &extension), LearningRate(Config(), 9999));
  EXPECT_EQ(LearningRate(Config(), 10000, &extension), LearningRate(Config(), 10000));
  float before = LearningRate(Config(), 10000, &extension);
  for (uint64_t step = 10001; step < 50000; step += 37) {
    const float rate = LearningRate(Config(), step, &extension);
    EXPECT_LE(rate, before) << step;
    before = rate;
  }
  const float half = LearningRate(Config(), 30000, &extension);
  EXPECT_FLOAT_EQ(half, static_cast<float>((4e-5 + extension.from_rate()) / 2));
  EXPECT_FLOAT_EQ(LearningRate(Config(), 50000, &extension), 4e-5f);
}

TEST(ExtendScheduleTest, KeepsLowestRateOfDoneRun) {
  const v1::Extension extension = ExtendSchedule(Config(), nullptr, RoundId(25000), 26000);
  EXPECT_EQ(extension.from_rate(), Config().min_learning_rate());
  for (const uint64_t step : {25000, 25500, 25999})
    EXPECT_EQ(LearningRate(Config(), step, &extension), 4e-5f);
}

TEST(ExtendScheduleTest, WarmUpIsNotCutShort) {
  const v1::Extension extension = ExtendSchedule(Config(), nullptr, RoundId(100), 50000);
  EXPECT_EQ(LearningRate(Config(), 399, &extension), 4e-4f);
  EXPECT_EQ(LearningRate(Config(), 200, &extension), LearningRate(Config(), 200));
  EXPECT_EQ(LearningRate(Config(), 400, &extension), 4e-4f);
  EXPECT_FLOAT_EQ(LearningRate(Config(), 400 + 24800, &extension), 2.2e-4f) << "half of the way";
}

TEST(ExtendScheduleTest, ContinuesEarlierExtension) {
  const v1::Extension first = ExtendSchedule(Config(), nullptr, RoundId(10000), 50000);
  const v1::Extension second = ExtendSchedule(Config(), &first, RoundId(40000), 60000);
  EXPECT_EQ(LearningRate(Config(), 40000, &second), LearningRate(Config(), 40000, &first));
  EXPECT_GT(LearningRate(Config(), 49999, &second), LearningRate(Config(), 49999, &first));
}

}  // namespace
}  // namespace distro
