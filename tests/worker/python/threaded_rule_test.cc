// A rule that several threads share gives the bytes of one that has everything.
#include "worker/python/threaded_rule.h"

#include "gtest/gtest.h"
#include "tests/testing/worker/delta_worker.h"
#include "worker/rules/optimizer.h"

namespace distro::worker {
namespace {

using testing::DeltaWorker;
using testing::kSmallLlama;

class ThreadedRuleTest : public ::testing::TestWithParam<int> {
 protected:
  ThreadedRuleTest() { worker_.TakeSteps(/*seed=*/4); }

  std::vector<std::string> Payloads(ThreadedRule* rule) {
    EXPECT_TRUE(rule->Compress(worker_.step, testing::SpansOf(&worker_.parameters),
                               testing::SpansOf(&worker_.x))
                    .ok());
    Optimizer optimizer(&worker_.layout, &kind_, rule->ranks());
    optimizer.SetPending(
        {.round = RoundId(3), .k = static_cast<int>(worker_.step.kept_per_block())});
    std::vector<std::string> payloads;
    for (const SharedBytes& payload : optimizer.Encode(rule->threads()))
      payloads.push_back(*payload);
    return payloads;
  }

  DeltaWorker worker_{kSmallLlama, /*segment_blocks=*/3};
  const UpdateRuleKind kind_ =
      LocalDeltas(worker_.config, &worker_.layout,
                  std::vector<bool>(worker_.layout.tensors().size()), LocalStepsBy::kCaller);
};

TEST_P(ThreadedRuleTest, ThreadsShowInNothing) {
  ThreadedRule alone(&worker_.layout, &kind_, 1), shared(&worker_.layout, &kind_, GetParam());
  EXPECT_EQ(shared.threads(), GetParam());
  for (int round = 0; round < 2; ++round)  // the second has the first's error buffer
    EXPECT_EQ(Payloads(&shared), Payloads(&alone));
  EXPECT_EQ(*shared.MomentumNorm(), *alone.MomentumNorm());
  EXPECT_EQ(shared.sums()->update->records, alone.sums()->update->records);
}

TEST_P(ThreadedRuleTest, StepsAreMeasuredAndScaledAsAWhole) {
  ThreadedRule rule(&worker_.layout, &kind_, GetParam());
  const RunSpans begin = testing::SpansOf(&worker_.parameters), end = testing::SpansOf(&worker_.x);
  const double norm = *rule.NormOfSteps(begin, end);
  EXPECT_GT(norm, 0);
  ASSERT_TRUE(rule.ScaleSteps(0.5f, begin, end).ok());
  EXPECT_NEAR(*rule.NormOfSteps(begin, end), norm / 2, norm * 1e-5);
  ASSERT_TRUE(rule.Copy(begin, end).ok());
  EXPECT_EQ(*rule.NormOfSteps(begin, end), 0);
}

// More threads than block rows too.
INSTANTIATE_TEST_SUITE_P(Threads, ThreadedRuleTest, ::testing::Values(1, 2, 3, 64));

}  // namespace
}  // namespace distro::worker
