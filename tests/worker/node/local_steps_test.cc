// A node whose rule takes local steps on a copy of the parameters.
#include <bit>
#include <limits>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/round_builder.h"
#include "tests/worker/node/node_fixture.h"

namespace distro::worker {
namespace {

using distro::testing::BuildDeltaRound;
using distro::testing::Committed;
using ::testing::IsEmpty;
using testing::kSequence;
using testing::RandomTokens;

class LocalStepsNodeTest : public testing::NodeFixture {
 protected:
  std::unique_ptr<Node> MakeDeltas() { return MakeNode({}, rule_); }
  v1::StepParameters DeltaStep(float rate = 0.05f) const {
    v1::StepParameters step;
    step.set_clip_norm(1);
    step.set_kept_per_block(3);
    v1::DeltaParameters& deltas = *step.mutable_deltas();
    for (const float of_step : {rate, rate})
      deltas.add_inner_rate_bits(std::bit_cast<uint32_t>(of_step));
    deltas.set_error_decay(0.5f);
    deltas.set_caps(std::string(tiny_.layout.tensors().size(), '\xff'));
    return step;
  }
  std::vector<double> Losses(Node* node, GradientAt at) {
    std::vector<double> losses;
    Gradient(node, 2, at, &losses);
    return losses;
  }
  // Two steps from the parameters, and the update.
  std::vector<std::string> TakeRound(Node* node, RoundId round, const v1::StepParameters& step) {
    EXPECT_TRUE(node->BeginLocalSteps().ok());
    for (const int index : {0, 1}) {
      const double norm = Gradient(node, 2, GradientAt::kCopy);
      EXPECT_EQ(node->TakeStep(step, index, norm), absl::OkStatus());
    }
    const auto payloads = node->Compress(round, step);
    EXPECT_TRUE(payloads.ok()) << payloads.status();
    std::vector<std::string> bytes;
    for (const SharedBytes& payload : *payloads) bytes.push_back(*payload);
    return bytes;
  }

  const UpdateRuleKind rule_ =
      RuleOf(testing::DeltasConfig(), &tiny_.layout, tiny_.model->architecture());
};

TEST_F(LocalStepsNodeTest, MovesCopyOnly) {
  const auto node = MakeDeltas();
  const std::vector<double> begin = Losses(node.get(), GradientAt::kParameters);
  const std::vector<int32_t> tokens = RandomTokens(2 * kSequence, 40, 7);
  const std::vector<TokenBatch> batch = {{.tokens = tokens, .sequences = 2}};
  const double loss = (*node->Losses(batch))[0];
  ASSERT_TRUE(node->BeginLocalSteps().ok());
  EXPECT_EQ(Losses(node.get(), GradientAt::kCopy), begin) << "it begins at the parameters";
  ASSERT_TRUE(node->TakeStep(DeltaStep(), 0, 1).ok());
  EXPECT_NE(Losses(node.get(), GradientAt::kCopy), begin);
  EXPECT_EQ(Losses(node.get(), GradientAt::kParameters), begin);
  EXPECT_EQ((*node->Losses(batch))[0], loss) << "evaluation is of the parameters";
  EXPECT_TRUE(SnapshotOf(*node) == *ReadFile(Snapshot()));
  ASSERT_TRUE(node->BeginLocalSteps().ok());
  EXPECT_EQ(Losses(node.get(), GradientAt::kCopy), begin) << "the next round begins there again";
}

TEST_F(LocalStepsNodeTest, RestoresState) {
  const auto one = MakeDeltas(), other = MakeDeltas();
  TakeRound(one.get(), RoundId(3), DeltaStep());
  EXPECT_EQ(one->kept()->local_steps, 2u);
  ASSERT_TRUE(Restore(other.get(), StateBytes(*one)).ok());
  ASSERT_TRUE(other->pending().has_value());
  EXPECT_EQ(other->pending()->round, RoundId(3));
  EXPECT_EQ(other->kept()->local_steps, 2u);
  EXPECT_TRUE(TakeRound(other.get(), RoundId(4), DeltaStep()) ==
              TakeRound(one.get(), RoundId(4), DeltaStep()));
}

// All positions are sent, of which the first two of each block come back.
TEST_F(LocalStepsNodeTest, TakesFeedbackOfARoundThatItApplied) {
  const auto node = MakeDeltas();
  v1::StepParameters step = DeltaStep();
  step.set_kept_per_block(4096);
  TakeRound(node.get(), RoundId(0), step);
  const double norm = *node->MomentumNorm();
  const CommittedRound round =
      Committed(tiny_.layout, BuildDeltaRound(tiny_.layout, RoundId(0), 0));
  ASSERT_EQ(node->Apply(round), absl::OkStatus());
  ASSERT_EQ(node->Feedback(round, 0), absl::OkStatus());
  EXPECT_FALSE(node->pending().has_value());
  EXPECT_NE(*node->MomentumNorm(), norm);
  EXPECT_GT(node->delta_readings()->cancelled.value_or(0), 0.9);
}

TEST_F(LocalStepsNodeTest, SkipsNonFinite) {
  const auto node = MakeDeltas();
  TakeRound(node.get(), RoundId(0), DeltaStep());
  const double norm = *node->MomentumNorm();
  const float huge = std::numeric_limits<float>::infinity();
  ASSERT_TRUE(node->BeginLocalSteps().ok());
  Gradient(node.get(), 2, GradientAt::kCopy);
  ASSERT_TRUE(node->TakeStep(DeltaStep(huge), 0, 1).ok());
  const auto payloads = node->Compress(RoundId(1), DeltaStep());
  ASSERT_TRUE(payloads.ok()) << payloads.status();
  EXPECT_THAT(*payloads, IsEmpty());
  EXPECT_FALSE(node->pending().has_value());
  EXPECT_EQ(*node->MomentumNorm(), norm) << "the buffer is as it was";
  EXPECT_FALSE(TakeRound(node.get(), RoundId(2), DeltaStep()).empty()) << "and it goes on";
}

}  // namespace
}  // namespace distro::worker
