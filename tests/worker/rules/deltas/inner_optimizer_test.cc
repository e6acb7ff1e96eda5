#include "worker/rules/deltas/inner_optimizer.h"

#include <cmath>

#include "common/model/layout/tensor_buffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/newton_schulz.h"
#include "worker/rules/host_backends.h"

namespace distro::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

class InnerOptimizerTest : public ::testing::Test {
 protected:
  InnerOptimizer Make(const InnerSettings& settings) {
    return InnerOptimizer(settings, tensors_,
                          host_.Of({.layout = &layout_, .runs = WholeRuns(layout_)}),
                          SpansOf(&first_), SpansOf(&second_));
  }
  // A step in which `tensor` has this gradient and is at x; the others are at 0 and stay there.
  static void Step(InnerOptimizer* inner, int tensor, float rate, float gradient_scale,
                   std::vector<float> gradient, absl::Span<float> x) {
    std::vector<std::vector<float>> zeros = {{0, 0}, {0, 0, 0, 0, 0, 0}, {0, 0}, {0, 0}};
    std::vector<std::vector<float>> none = zeros;
    RunSpans gradients, copies;
    for (size_t i = 0; i < zeros.size(); ++i) {
      gradients.push_back(absl::MakeSpan(none[i]));
      copies.push_back(absl::MakeSpan(zeros[i]));
    }
    gradients[tensor] = absl::MakeSpan(gradient);
    copies[tensor] = x;
    EXPECT_EQ(inner->Step(rate, gradient_scale, gradients, copies), absl::OkStatus());
  }

  const HostBackends host_;
  // By name: a_head, b_inside, c_norm, d_embedding.
  const Layout layout_ =
      *Layout::Create(*Manifest::Create({{.name = "a_head", .shape = {2, 1}},
                                         {.name = "b_inside", .shape = {2, 3}},
                                         {.name = "c_norm", .shape = {2}},
                                         {.name = "d_embedding", .shape = {2, 1}}}),
                      16);
  const std::vector<InnerTensor> tensors_ = InnerTensors(layout_, {{3}, {1, 2}, {2, 0}});
  TensorBuffer first_{layout_};
  TensorBuffer second_{layout_};
};

TEST_F(InnerOptimizerTest, MuonStepsMatricesThatAreNeitherEmbeddingNorHead) {
  std::vector<bool> inside, decays;
  for (const InnerTensor& tensor : tensors_) {
    inside.push_back(tensor.inside);
    decays.push_back(tensor.decays);
  }
  EXPECT_THAT(inside, ElementsAre(false, true, false, false));
  EXPECT_THAT(decays, ElementsAre(true, true, false, true));
}

TEST_F(InnerOptimizerTest, AdamWTakesTheStepsOfItsPaper) {
  InnerOptimizer inner = Make({.method = InnerMethod::kAdamW, .weight_decay = 0.5f});
  std::array<float, 2> p = {1, -2};
  // Corrected moments of a first step are the gradient and its square: the direction is its sign.
  Step(&inner, 3, 0.1f, 1, {3, -0.01f}, absl::MakeSpan(p));
  EXPECT_THAT(p, ElementsAre(FloatNear(0.95f - 0.1f, 1e-6f), FloatNear(-1.9f + 0.1f, 1e-5f)));
  // m = 0.9 * 0.1 * 3 - 0.1 * 3 = -0.03 of 1 - 0.81; v = 9, corrected.
  std::array<float, 2> q = {0, 0};
  Step(&inner, 3, 0.1f, 1, {-3, -0.01f}, absl::MakeSpan(q));
  EXPECT_THAT(q, ElementsAre(FloatNear(0.1f * 0.03f / 0.19f / 3, 1e-6f), FloatNear(0.1f, 1e-5f)));
}

TEST_F(InnerOptimizerTest, TensorsOfOneDimensionDoNotDecayAndAreStepsOfAdamW) {
  InnerOptimizer inner = Make({.method = InnerMethod::kMuon, .weight_decay = 0.5f});
  std::array<float, 2> p = {1, 1};
  Step(&inner, 2, 0.1f, 1, {-7, 7}, absl::MakeSpan(p));
  EXPECT_THAT(p, ElementsAre(FloatNear(1.1f, 1e-6f), FloatNear(0.9f, 1e-6f)));
}

TEST_F(InnerOptimizerTest, MuonsStepIsNewtonSchulzOfGradientAndBuffer) {
  const InnerSettings settings = {.mu = 0.5f, .muon_scale = 0.25f, .weight_decay = 0.5f};
  InnerOptimizer inner = Make(settings);
  const std::vector<float> g1 = {1, 2, -1, 0.5f, 3, 1}, g2 = {0, 1, 1, -2, 0.5f, 4};
  std::vector<float> x(6, 1), want(6, 1), buffer(6, 0);
  for (const std::vector<float>& gradient : {g1, g2}) {
    Step(&inner, 1, 0.1f, 0.5f, gradient, absl::MakeSpan(x));
    std::vector<float> direction(6);
    for (int i = 0; i < 6; ++i) {
      buffer[i] = 0.5f * buffer[i] + 0.5f * gradient[i];
      direction[i] = 0.5f * gradient[i] + 0.5f * buffer[i];
    }
    NewtonSchulz(*SupportedVectorKernels().front().matrix, 2, 3, 5, absl::MakeSpan(direction));
    for (int i = 0; i < 6; ++i)
      want[i] -= 0.1f * (0.25f * std::sqrt(3.0f) * direction[i] + 0.5f * want[i]);
  }
  for (int i = 0; i < 6; ++i) EXPECT_NEAR(x[i], want[i], 1e-5) << i;
}

TEST_F(InnerOptimizerTest, AfterAResetItStepsAsAtTheStart) {
  InnerOptimizer inner = Make({});
  const std::vector<float> gradient = {1, 2, -1, 0.5f, 3, 1};
  std::vector<float> once(6, 1), again(6, 1);
  Step(&inner, 1, 0.1f, 1, gradient, absl::MakeSpan(once));
  inner.Reset();
  EXPECT_EQ(inner.steps(), 0u);
  Step(&inner, 1, 0.1f, 1, gradient, absl::MakeSpan(again));
  EXPECT_EQ(once, again);
}

}  // namespace
}  // namespace distro::worker
