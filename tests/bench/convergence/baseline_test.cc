#include "bench/convergence/baseline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "bench/local/local_aggregator.h"
#include "common/model/layout/layout.h"
#include "tests/testing/worker/training.h"
#include "worker/model/model.h"

namespace distro::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::TestWithParam;
using ::testing::Values;

Layout TwoElements() {
  return *Layout::Create(*Manifest::Create({{.name = "w", .shape = {1, 2}}}), 16);
}

TEST(BaselineOptimizerTest, SgdAddsMomentumAndDecay) {
  v1::RunConfig config;
  config.set_beta(0.5);
  config.set_weight_decay(0.5);
  const Layout layout = TwoElements();
  BaselineOptimizer optimizer({.method = BaselineMethod::kSgd}, config, layout,
                              {{.matrix = {.rows = 1, .cols = 2, .elements = 2}, .decays = true}});
  std::array<float, 2> p = {1, 0}, g = {2, 1}, second = {0, 1};
  ASSERT_TRUE(optimizer.Step(0.1, {absl::MakeSpan(g)}, {absl::MakeSpan(p)}).ok());
  EXPECT_THAT(p, ElementsAre(FloatNear(1 - 0.1f * 2.5f, 1e-6f), FloatNear(-0.1f, 1e-6f)));
  ASSERT_TRUE(optimizer.Step(0.1, {absl::MakeSpan(second)}, {absl::MakeSpan(p)}).ok());
  EXPECT_THAT(p, ElementsAre(FloatNear(0.75f - 0.1f * 1.375f, 1e-6f),
                             FloatNear(-0.1f - 0.1f * 1.45f, 1e-6f)));
}

class BaselineTest : public TestWithParam<BaselineMethod> {};

TEST_P(BaselineTest, LearnsAndCountsTheBytesOfAnAllReduce) {
  SetTorchThreads(1);
  const testing::TinyRun tiny;
  v1::RunConfig config = tiny.Config(/*workers=*/4, /*rounds=*/30, /*overlap=*/0);
  config.set_peak_learning_rate(GetParam() == BaselineMethod::kSgd ? 0.3 : 0.01);
  const server::RunIdentity run =
      *server::MakeLocalRun(config, tiny.checkpoint_dir(), tiny.File("initial.safetensors"));
  const TokenSource tokens = *OpenTokens(tiny.text_path(), TokenFormat::kAuto);
  const absl::StatusOr<Curve> curve = RunBaseline(run, tokens, {.method = GetParam()});
  ASSERT_TRUE(curve.ok()) << curve.status();
  const CurvePoint& first = curve->point(0);
  const CurvePoint& last = curve->point(curve->points() - 1);
  EXPECT_EQ(last.round, 30u);
  EXPECT_LT(last.held_out_loss, first.held_out_loss - 1);
  EXPECT_EQ(last.sent_bytes, 30u * 3 * run.layout->elements());  // 2 * 3 / 4 * 2 bytes
}

INSTANTIATE_TEST_SUITE_P(Methods, BaselineTest,
                         Values(BaselineMethod::kAdamW, BaselineMethod::kMuon,
                                BaselineMethod::kSgd));

}  // namespace
}  // namespace distro::worker
