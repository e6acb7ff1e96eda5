#include "common/run/schedule.h"

#include <bit>
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
  config.set_beta(0.999);
  config.set_clip_norm(1);
  config.set_weight_decay(0.1);
  config.set_kept_per_block(4);
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

TEST(SignStepTest, CarriesTheBitsOfTheUpdate) {
  const v1::StepParameters step = SignStep(Config(), RoundId(123));
  const float eta = LearningRate(Config(), 123);
  EXPECT_EQ(step.eta_bits(), std::bit_cast<uint32_t>(eta));
  EXPECT_EQ(std::bit_cast<float>(step.eta_lambda_bits()), static_cast<float>(double{eta} * 0.1));
  EXPECT_EQ(step.beta(), 0.999f);
  EXPECT_EQ(step.clip_norm(), 1);
  EXPECT_EQ(step.kept_per_block(), 4);
}

TEST(AssignSlotsTest, GivesConsecutiveSamplesInTheOrderOfNames) {
  SamplePool pool({}, 100);
  const std::vector<v1::Slot> slots = AssignSlots({"a", "b", "c"}, 4, 8, &pool);
  ASSERT_EQ(slots.size(), 3);
  EXPECT_EQ(slots[0].worker(), "a");
  EXPECT_EQ(slots[0].first_sample(), 100);
  EXPECT_EQ(slots[1].worker(), "b");
  EXPECT_EQ(slots[1].first_sample(), 108);
  EXPECT_EQ(slots[2].first_sample(), 116);
  EXPECT_EQ(slots[2].samples(), 8);
  EXPECT_EQ(pool.next_sample(), 124);
}

TEST(AssignSlotsTest, WhoGetsWhatCameBackChangesWithTheRound) {
  for (const uint64_t round : {3, 4, 5}) {
    SamplePool pool({}, 100);
    pool.GiveBack(ConsecutiveSamples(0, 8), 0);
    const std::vector<v1::Slot> slots = AssignSlots({"a", "b", "c"}, round, 8, &pool);
    for (size_t i = 0; i < slots.size(); ++i) {
      EXPECT_EQ(slots[i].worker(), std::string(1, static_cast<char>('a' + i)));
      EXPECT_EQ(slots[i].first_sample() == 0, i == round % 3);
    }
  }
}

TEST(AssignSlotsTest, GivesNothingToNobody) {
  SamplePool pool({}, 7);
  EXPECT_TRUE(AssignSlots({}, 4, 8, &pool).empty());
  EXPECT_EQ(pool.next_sample(), 7);
}

}  // namespace
}  // namespace distro
