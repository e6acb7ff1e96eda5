#include "common/run/round/weighing.h"

#include "common/run/sample_pool.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

const Weighing kWindow = {.window = 10, .samples_a_step = 4, .states_slot = true};

v1::Slot SlotOf(uint64_t first, uint32_t samples) {
  v1::Slot slot = ConsecutiveSamples(first, samples);
  slot.set_worker("w");
  return slot;
}

TEST(WeighingTest, IsThatOfTheRun) {
  v1::RunConfig config;
  config.set_method(v1::METHOD_DELTAS);
  config.set_samples_per_worker(4);
  config.set_local_steps(10);
  EXPECT_TRUE(WeighingOf(config).all_alike());
  EXPECT_TRUE(WeighingOf(config).states_slot);
  config.mutable_round_window()->set_seconds(5);
  EXPECT_EQ(WeighingOf(config).window, 10u);
  EXPECT_FALSE(WeighingOf(config).all_alike());
  config.clear_round_window();
  config.set_weighting(v1::WEIGHTING_DATA);
  EXPECT_TRUE(WeighingOf(config).by_data);
  EXPECT_FALSE(WeighingOf(config).all_alike());
}

TEST(WeighingTest, WeightsAreByStepsOrByDataOrOne) {
  EXPECT_EQ(WeightOf(kWindow, 10, 9), 15);
  EXPECT_EQ(WeightOf(kWindow, 3, 9), 5);
  EXPECT_EQ(WeightOf({.by_data = true}, 0, 9), 9);
  EXPECT_EQ(WeightOf({}, 0, 9), 1);
}

TEST(CheckClaimTest, StepsAreThoseThatTheSlotHasSamplesFor) {
  const v1::Slot slot = SlotOf(0, 40);
  EXPECT_TRUE(CheckClaim(kWindow, {.local_steps = 10}, slot).ok());
  for (const uint32_t steps : {0u, 11u})
    EXPECT_TRUE(absl::IsInvalidArgument(CheckClaim(kWindow, {.local_steps = steps}, slot)));
  EXPECT_TRUE(CheckClaim(kWindow, {.abstain = true}, slot).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckClaim({}, {.local_steps = 1}, slot))) << "no window";
}

TEST(CheckClaimTest, ChecksFirstSample) {
  const Weighing deltas = {.states_slot = true};
  EXPECT_TRUE(CheckClaim(deltas, {.first_sample = 8}, SlotOf(8, 4)).ok());
  EXPECT_TRUE(CheckClaim(deltas, {}, SlotOf(8, 4)).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckClaim(deltas, {.first_sample = 4}, SlotOf(8, 4))));
  EXPECT_TRUE(absl::IsInvalidArgument(
      CheckClaim(deltas, {.first_sample = 8, .abstain = true}, SlotOf(8, 4))));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckClaim({}, {.first_sample = 8}, SlotOf(8, 4))))
      << "signs";
}

}  // namespace
}  // namespace distro
