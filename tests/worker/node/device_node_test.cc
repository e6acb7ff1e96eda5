// A node on a device with memory of its own does what one on the CPU does: over emulated GPUs in
// every build, over the machine's in worker_gpu_test.
#include <cmath>

#include "common/base/file.h"
#include "tests/testing/round_builder.h"
#include "tests/worker/node/devices_under_test.h"
#include "tests/worker/node/node_fixture.h"

namespace distro::worker {
namespace {

using distro::testing::BuildRound;
using distro::testing::Committed;
using testing::DevicesUnderTest;
using testing::NodeCase;

class DeviceNodeTest : public testing::NodeFixture, public ::testing::WithParamInterface<NodeCase> {
 protected:
  void SetUp() override {
    how_ = GetParam();
    how_.devices = DevicesUnderTest();
    if (how_.devices->default_ranks() == 0) GTEST_SKIP() << "needs a GPU";
    cpu_ = MakeNode({});
    node_ = MakeNode(how_);
  }
  // Both apply `count` rounds.
  void ApplyRounds(int count) {
    uint64_t hash = 0;
    for (int i = 0; i < count; ++i) {
      const CommittedRound round =
          Committed(tiny_.layout, BuildRound(tiny_.layout, RoundId(i), hash));
      hash = round.hash;
      for (Node* node : {cpu_.get(), node_.get()}) {
        const absl::Status applied = node->Apply(round);
        ASSERT_TRUE(applied.ok()) << applied;
      }
    }
  }

  NodeCase how_;
  std::unique_ptr<Node> cpu_;
  std::unique_ptr<Node> node_;
};
INSTANTIATE_TEST_SUITE_P(Strategies, DeviceNodeTest, ::testing::ValuesIn(testing::DeviceCases()),
                         testing::DeviceCaseName);

TEST_P(DeviceNodeTest, EqualVotesGiveTheCpusParameters) {
  EXPECT_EQ(node_->ranks(), how_.devices->default_ranks());
  EXPECT_EQ(node_->StateHash(), cpu_->StateHash());
  EXPECT_TRUE(SnapshotOf(*node_) == *ReadFile(Snapshot()));
  ApplyRounds(3);
  EXPECT_EQ(node_->StateHash(), cpu_->StateHash());
  EXPECT_EQ(node_->tensor_hashes(), cpu_->tensor_hashes());
  EXPECT_TRUE(SnapshotOf(*node_) == SnapshotOf(*cpu_));
}

// Sums of some hundred terms in another order: 1e-4 is far above f32's rounding and far below a
// mistake.
TEST_P(DeviceNodeTest, LossesAndNormsAreTheCpus) {
  ApplyRounds(1);
  for (const GradientAt at : {GradientAt::kParameters, GradientAt::kCopy}) {
    for (Node* node : {cpu_.get(), node_.get()}) ASSERT_TRUE(node->MakeLookahead(0.01f).ok());
    std::vector<double> expected_losses, losses;
    const double expected = Gradient(cpu_.get(), 5, at, &expected_losses);
    const double norm = Gradient(node_.get(), 5, at, &losses);
    EXPECT_NEAR(norm, expected, 1e-4 * expected);
    ASSERT_EQ(losses.size(), 5);
    for (size_t i = 0; i < losses.size(); ++i)
      EXPECT_NEAR(losses[i], expected_losses[i], 1e-4 * expected_losses[i]);
    for (Node* node : {cpu_.get(), node_.get()}) {
      ASSERT_TRUE(node->TakeStep(testing::Step(), 0, expected).ok());
      ASSERT_TRUE(node->Compress(RoundId(1), testing::Step()).ok());
    }
    EXPECT_NEAR(*node_->MomentumNorm(), *cpu_->MomentumNorm(), 1e-4 * *cpu_->MomentumNorm());
  }
}

// The CPU's momentum and what it has pending, there and back, also after error feedback was taken
// from it.
TEST_P(DeviceNodeTest, RoundTripsState) {
  Train(cpu_.get());
  const std::string state = StateBytes(*cpu_);
  ASSERT_TRUE(Restore(node_.get(), state).ok());
  EXPECT_TRUE(StateBytes(*node_) == state);
  const auto payloads = node_->EncodePending(), expected = cpu_->EncodePending();
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(*payloads[i], *expected[i]);
  const CommittedRound round = Committed(tiny_.layout, BuildRound(tiny_.layout, RoundId(3), 0));
  const double before = *cpu_->MomentumNorm();
  for (Node* node : {cpu_.get(), node_.get()}) ASSERT_TRUE(node->Feedback(round, 0).ok());
  const double after = *cpu_->MomentumNorm();
  EXPECT_NE(after, before);
  EXPECT_NEAR(*node_->MomentumNorm(), after, 1e-4 * after);
}

}  // namespace
}  // namespace distro::worker
