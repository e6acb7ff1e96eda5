// A node of deltas on a device with memory of its own does what one on the CPU does: over emulated
// GPUs in every build, over the machine's in worker_gpu_test.
#include <bit>
#include <limits>

#include "common/base/file.h"
#include "gmock/gmock.h"
#include "tests/testing/round_builder.h"
#include "tests/worker/node/devices_under_test.h"
#include "tests/worker/node/node_fixture.h"

namespace distro::worker {
namespace {

using distro::testing::BuildDeltaRound;
using distro::testing::Committed;
using testing::DevicesUnderTest;
using ::testing::IsEmpty;
using testing::NodeCase;
using ::testing::Not;

// Far above what bf16's products change in a step of this rate, far below a step.
constexpr double kShare = 1e-2;

class DeviceDeltasTest : public testing::NodeFixture,
                         public ::testing::WithParamInterface<NodeCase> {
 protected:
  void SetUp() override {
    how_ = GetParam();
    how_.devices = DevicesUnderTest();
    if (how_.devices->default_ranks() == 0) GTEST_SKIP() << "needs a GPU";
    cpu_ = MakeNode({}, rule_);
    node_ = MakeNode(how_, rule_);
  }
  UpdateRuleKind RuleWith(double delta_clip) const {
    return RuleOf(testing::DeltasConfig(delta_clip), &tiny_.layout, tiny_.model->architecture());
  }
  v1::StepParameters DeltaStep(float rate = 0.01f) const {
    v1::StepParameters step;
    step.set_clip_norm(1);
    step.set_kept_per_block(3);
    v1::DeltaParameters& deltas = *step.mutable_deltas();
    for (const float of_step : {rate, rate})
      deltas.add_inner_rate_bits(std::bit_cast<uint32_t>(of_step));
    deltas.set_outer_rate_bits(std::bit_cast<uint32_t>(1.0f));
    deltas.set_error_decay(0.5f);
    deltas.set_caps(std::string(tiny_.layout.tensors().size(), '\xff'));
    deltas.set_as_dct(rule_.as_dct);
    return step;
  }
  // Two steps from the parameters; the losses at the copy before each and at the end.
  std::vector<double> TakeSteps(Node* node, const v1::StepParameters& step) {
    std::vector<double> losses;
    EXPECT_TRUE(node->BeginLocalSteps().ok());
    for (const int index : {0, 1}) {
      const double norm = Gradient(node, 2, GradientAt::kCopy, &losses);
      EXPECT_EQ(node->TakeStep(step, index, norm), absl::OkStatus());
    }
    Gradient(node, 2, GradientAt::kCopy, &losses);
    return losses;
  }
  // The update of a round of which nothing was included.
  std::vector<SharedBytes> TakeRound(Node* node, RoundId round, const v1::StepParameters& step) {
    TakeSteps(node, step);
    auto payloads = node->Compress(round, step);
    EXPECT_TRUE(payloads.ok()) << payloads.status();
    return *std::move(payloads);
  }

  const UpdateRuleKind rule_ = RuleWith(0);
  NodeCase how_;
  std::unique_ptr<Node> cpu_;
  std::unique_ptr<Node> node_;
};
INSTANTIATE_TEST_SUITE_P(Strategies, DeviceDeltasTest, ::testing::ValuesIn(testing::DeviceCases()),
                         testing::DeviceCaseName);

TEST_P(DeviceDeltasTest, EqualResultsGiveTheCpusParameters) {
  uint64_t hash = 0;
  for (int i = 0; i < 3; ++i) {
    const CommittedRound round =
        Committed(tiny_.layout, BuildDeltaRound(tiny_.layout, RoundId(i), hash));
    hash = round.hash;
    for (Node* node : {cpu_.get(), node_.get()}) ASSERT_EQ(node->Apply(round), absl::OkStatus());
    EXPECT_EQ(node_->StateHash(), cpu_->StateHash()) << "round " << i;
  }
  EXPECT_EQ(node_->tensor_hashes(), cpu_->tensor_hashes());
  EXPECT_TRUE(SnapshotOf(*node_) == SnapshotOf(*cpu_));
  EXPECT_FALSE(SnapshotOf(*cpu_) == *ReadFile(Snapshot()));
}

TEST_P(DeviceDeltasTest, LocalStepsAreTheCpus) {
  const std::vector<double> expected = TakeSteps(cpu_.get(), DeltaStep());
  const std::vector<double> losses = TakeSteps(node_.get(), DeltaStep());
  ASSERT_EQ(losses.size(), expected.size());
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(losses[i], expected[i], kShare * expected[i]) << i;
  EXPECT_LT(expected.back(), expected.front()) << "the steps lead down";
  for (Node* node : {cpu_.get(), node_.get()})
    ASSERT_THAT(*node->Compress(RoundId(0), DeltaStep()), Not(IsEmpty()));
  const DeltaReadings readings = *node_->delta_readings(), of_cpu = *cpu_->delta_readings();
  EXPECT_EQ(readings.inner_steps, of_cpu.inner_steps);
  EXPECT_NEAR(*readings.delta_norm, *of_cpu.delta_norm, kShare * *of_cpu.delta_norm);
  EXPECT_NEAR(*readings.energy_kept, *of_cpu.energy_kept, kShare);
  EXPECT_NEAR(*node_->MomentumNorm(), *cpu_->MomentumNorm(), kShare * *cpu_->MomentumNorm());
  EXPECT_TRUE(SnapshotOf(*node_) == *ReadFile(Snapshot())) << "the parameters have not moved";
}

TEST_P(DeviceDeltasTest, ScalesDownToDeltaClip) {
  constexpr double kClip = 0.01;
  const UpdateRuleKind clipped = RuleWith(kClip);
  const auto node = MakeNode(how_, clipped);
  TakeRound(node.get(), RoundId(0), DeltaStep());
  EXPECT_NEAR(*node->delta_readings()->delta_norm, kClip, 1e-3 * kClip);
  TakeRound(node_.get(), RoundId(0), DeltaStep());
  EXPECT_GT(*node_->delta_readings()->delta_norm, 2 * kClip)
      << "so that there is something to clip";
}

// The CPU's error buffer, inner state and pending update, there and back, and what is left of the
// buffer when some of the update came back.
TEST_P(DeviceDeltasTest, RoundTripsState) {
  const std::vector<SharedBytes> expected = TakeRound(cpu_.get(), RoundId(0), DeltaStep());
  const std::string state = StateBytes(*cpu_);
  ASSERT_EQ(Restore(node_.get(), state), absl::OkStatus());
  EXPECT_TRUE(StateBytes(*node_) == state);
  const auto payloads = node_->EncodePending();
  ASSERT_EQ(payloads.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(*payloads[i], *expected[i]);
  const CommittedRound round =
      Committed(tiny_.layout, BuildDeltaRound(tiny_.layout, RoundId(0), 0));
  for (Node* node : {cpu_.get(), node_.get()}) {
    ASSERT_EQ(node->Apply(round), absl::OkStatus());
    ASSERT_EQ(node->Feedback(round, 0), absl::OkStatus());
  }
  const double norm = *cpu_->MomentumNorm();
  EXPECT_NEAR(*node_->MomentumNorm(), norm, 1e-6 * norm);
  EXPECT_EQ(node_->delta_readings()->cancelled, cpu_->delta_readings()->cancelled);
}

TEST_P(DeviceDeltasTest, ForgetsState) {
  const std::string fresh = StateBytes(*node_);
  TakeRound(node_.get(), RoundId(0), DeltaStep());
  EXPECT_FALSE(StateBytes(*node_) == fresh);
  ASSERT_EQ(node_->ForgetState(), absl::OkStatus());
  EXPECT_TRUE(StateBytes(*node_) == fresh);
}

TEST_P(DeviceDeltasTest, SkipsNonFinite) {
  TakeRound(node_.get(), RoundId(0), DeltaStep());
  const double norm = *node_->MomentumNorm();
  EXPECT_THAT(TakeRound(node_.get(), RoundId(1), DeltaStep(std::numeric_limits<float>::infinity())),
              IsEmpty());
  EXPECT_FALSE(node_->pending().has_value());
  EXPECT_EQ(*node_->MomentumNorm(), norm) << "the buffer is as it was";
  EXPECT_EQ(node_->kept()->local_steps, 0u) << "the inner optimizer begins anew";
  EXPECT_THAT(TakeRound(node_.get(), RoundId(2), DeltaStep()), Not(IsEmpty())) << "and it goes on";
}

}  // namespace
}  // namespace distro::worker
