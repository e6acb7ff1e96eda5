// Transfers after a failed operation of a rank: each started one is waited for before its memory is
// freed, and no other one is.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/fsdp/every_strategy.h"
#include "tests/worker/fsdp/failing_communicator.h"
#include "tests/worker/fsdp/ranks.h"
#include "worker/fsdp/thread_communicator.h"
#include "worker/fsdp/transfers.h"
#include "worker/fsdp/unit_driver.h"

namespace distro::worker {
namespace {

using ::distro::worker::testing::FailingCommunicator;
using ::distro::worker::testing::OnEveryRank;
using ::distro::worker::testing::RandomTokens;
using ::testing::Each;
using ::testing::IsEmpty;

struct FailedStep {
  absl::Status first, second;  // of two gradient steps of one driver
  bool has_failed = false;     // there were as many Starts
  std::set<int64_t> left;      // under way after the driver is gone
};

class FailedTransfersTest : public testing::EveryStrategyTest {
 protected:
  // Two steps by rank; Start number `fails_at` of every rank fails.
  std::vector<FailedStep> Steps(int fails_at) {
    auto communicators = MakeThreadGroup(kRanks, {})->TakeCommunicators();
    std::vector<FailedStep> steps(kRanks);
    OnEveryRank(communicators, [&](int rank, Communicator& communicator) {
      FailingCommunicator failing(&communicator, fails_at);
      FailedStep& step = steps[rank];
      {
        UnitDriver driver(GetParam(), at::kCPU, DependenciesOf(rank, failing));
        step.first = Step(driver, rank);
        step.second = Step(driver, rank);
      }
      step.left = failing.under_way();
      step.has_failed = failing.has_failed();
      return absl::OkStatus();
    });
    return steps;
  }

  static absl::Status Step(UnitDriver& driver, int rank) {
    const std::vector<int32_t> tokens = RandomTokens(12, 40, rank);
    const TokenBatch batch{.tokens = tokens, .sequences = 1};
    const at::Tensor parameters = at::ones({driver.parameter_elements()}, at::kFloat);
    const at::Tensor gradient = at::zeros({driver.gradient_elements()}, at::kFloat);
    const auto loss = driver.Gradient(&batch, parameters, Accumulation::kStore, gradient);
    return loss.ok() ? driver.FinishGradient(gradient) : loss.status();
  }
};

TEST_P(FailedTransfersTest, AreWaitedForBeforeTheirMemoryIsFreed) {
  int fails_at = 0;
  for (bool has_failed = true; has_failed; ++fails_at) {
    for (const FailedStep& step : Steps(fails_at)) {
      SCOPED_TRACE(absl::StrCat("start ", fails_at));
      EXPECT_THAT(step.left, IsEmpty());
      has_failed = step.has_failed;
    }
  }
  EXPECT_GT(fails_at, 4);  // every Start of the two steps has failed once
  for (const MemoryCounter& memory : memory_) {
    EXPECT_EQ(memory.now(MemoryCategory::kGathered), 0);
    EXPECT_EQ(memory.now(MemoryCategory::kWorkspace), 0);
  }
}

// The next step returns why the group ended, not a transfer that nobody started.
TEST_P(FailedTransfersTest, AreNamedByNextStep) {
  for (const FailedStep& step : Steps(/*fails_at=*/1)) {
    EXPECT_FALSE(step.first.ok());
    EXPECT_EQ(step.second.code(), absl::StatusCode::kAborted) << step.second;
  }
}

INSTANTIATE_TEST_SUITE_P(Strategies, FailedTransfersTest, FailedTransfersTest::Strategies(),
                         FailedTransfersTest::NameOf);

TEST(TransfersTest, TakesOnce) {
  Transfers<std::string> transfers;
  const Transfer first = transfers.Add("first"), second = transfers.Add("second");
  EXPECT_EQ(transfers.Take(second).value(), "second");
  EXPECT_EQ(transfers.Take(first).value(), "first");
  EXPECT_EQ(transfers.Take(first).status().code(), absl::StatusCode::kInternal);
}

TEST(TransfersTest, FailsUnlessStarted) {
  auto communicators = MakeThreadGroup(1, {})->TakeCommunicators();
  EXPECT_EQ(communicators[0]->Wait(Transfer{}).code(), absl::StatusCode::kInternal);
  EXPECT_EQ(communicators[0]->Wait(Transfer{.number = 7}).code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace distro::worker
