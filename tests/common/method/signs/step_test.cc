#include "common/method/signs/step.h"

#include <bit>

#include "common/method/base/learning_rate.h"
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

TEST(SignStepTest, CarriesTheBitsOfTheUpdate) {
  const v1::StepParameters step = SignStep(Config(), RoundId(123));
  const float eta = LearningRate(Config(), 123);
  EXPECT_EQ(step.eta_bits(), std::bit_cast<uint32_t>(eta));
  EXPECT_EQ(std::bit_cast<float>(step.eta_lambda_bits()), static_cast<float>(double{eta} * 0.1));
  EXPECT_EQ(step.beta(), 0.999f);
  EXPECT_EQ(step.clip_norm(), 1);
  EXPECT_EQ(step.kept_per_block(), 4);
}

}  // namespace
}  // namespace distro
