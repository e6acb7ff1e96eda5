#include "common/method/deltas/step.h"

#include "common/method/base/learning_rate.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

TEST(LocalRatesTest, FollowAnExtensionFromItsFirstRoundOn) {
  v1::RunConfig config;
  config.set_rounds(25000);
  config.set_peak_learning_rate(4e-4);
  config.set_min_learning_rate(4e-5);
  config.set_warmup_rounds(400);
  config.set_local_steps(5);
  const v1::Extension extension = ExtendSchedule(config, nullptr, RoundId(10000), 50000);
  EXPECT_EQ(LocalRates(config, RoundId(9999), &extension), LocalRates(config, RoundId(9999)));
  EXPECT_EQ(LocalRates(config, RoundId(10000), &extension)[0], LearningRate(config, 50000));
  EXPECT_GT(LocalRates(config, RoundId(10000), &extension)[4], LearningRate(config, 50004));
}

}  // namespace
}  // namespace distro
