// A log that does not continue the parameters: the worker takes the snapshot and the log again, in
// the same process.
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "common/base/reason.h"
#include "gtest/gtest.h"
#include "tests/testing/worker/training.h"
#include "tests/worker/train/forwarding_exchange.h"
#include "tests/worker/train/local_aggregator.h"

namespace distro::worker {
namespace {

using testing::TinyRun;
using testing::TrainWorker;
using testing::WorkerResult;

constexpr uint64_t kRounds = 8;
constexpr int kDeltas = 2;  // where an overlap is asked for: a run of deltas

// Returns `reason` instead of an event while `when` holds, at most `times` times.
class Diverging final : public ForwardingExchange {
 public:
  Diverging(server::LocalAggregator* aggregator, std::string reason, int times,
            std::function<bool(const Diverging&)> when)
      : ForwardingExchange(aggregator), reason_(std::move(reason)), times_(times), when_(when) {}

  absl::StatusOr<RoundEvent> Next() override {
    absl::StatusOr<RoundEvent> event = inner_.Next();
    const bool opens = event.ok() && std::holds_alternative<OpenedRound>(*event);
    opened = opens ? std::optional<RoundId>(std::get<OpenedRound>(*event).round) : std::nullopt;
    if (times_ == 0 || !when_(*this)) return event;
    --times_;
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, reason_, "by the test");
  }
  void Upload(RoundUpdate update) override {
    uploaded = update.round;
    inner_.Upload(std::move(update));
  }

  std::optional<RoundId> opened;  // by the event that comes next
  RoundId uploaded;               // last

 private:
  const std::string reason_;
  int times_;
  const std::function<bool(const Diverging&)> when_;
};

class ResyncTest : public ::testing::TestWithParam<int> {
 protected:
  v1::RunConfig Config() const {
    return GetParam() == kDeltas ? tiny_.DeltaConfig(1, kRounds, /*local_steps=*/2)
                                 : tiny_.Config(1, kRounds, GetParam());
  }
  WorkerResult Undisturbed() const {
    const auto aggregator = Aggregate(tiny_, Config());
    server::LocalExchange exchange(aggregator.get());
    return TrainWorker(tiny_, {.name = "w0", .exchange = &exchange});
  }
  WorkerResult Train(const std::string& reason, int times,
                     std::function<bool(const Diverging&)> when) const {
    const auto aggregator = Aggregate(tiny_, Config());
    Diverging exchange(aggregator.get(), reason, times, std::move(when));
    return TrainWorker(tiny_, {.name = "w0", .exchange = &exchange});
  }

  const TinyRun tiny_;
};

// Before the gradient of round 3 is made.
TEST_P(ResyncTest, KeepsMomentum) {
  for (const char* reason : {"diverged", "pruned"}) {
    const WorkerResult result =
        Train(reason, 1, [](const Diverging& at) { return at.opened == RoundId(3); });
    ASSERT_TRUE(result.status.ok()) << result.status;
    EXPECT_EQ(result.summary.resyncs, 1u);
    EXPECT_EQ(result.summary.rounds_applied, kRounds + 3);
    if (GetParam() == 1) continue;  // the gradient in hand was dropped
    const WorkerResult undisturbed = Undisturbed();
    EXPECT_EQ(result.summary.state_hash, undisturbed.summary.state_hash);
    EXPECT_EQ(result.momentum_bits, undisturbed.momentum_bits);
  }
}

// The included part of an update is subtracted from the momentum once, also if the log reports it
// only after the resync.
TEST_P(ResyncTest, SettlesPendingByLog) {
  const WorkerResult result =
      Train("diverged", 1, [](const Diverging& at) { return at.uploaded == RoundId(3); });
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.summary.resyncs, 1u);
  EXPECT_EQ(result.summary.updates_sent, kRounds);
  if (GetParam() != 1) {
    EXPECT_EQ(result.momentum_bits, Undisturbed().momentum_bits);
  }
}

TEST_P(ResyncTest, EndsOnRepeatedDivergence) {
  const WorkerResult result =
      Train("diverged", 5, [](const Diverging& at) { return at.opened == RoundId(3); });
  EXPECT_EQ(ReasonOf(result.status), "diverged");
  EXPECT_EQ(result.summary.resyncs, 1u);
}

TEST_P(ResyncTest, EndsWhereNoRoundWasApplied) {
  const WorkerResult result = Train("diverged", 5, [](const Diverging&) { return true; });
  EXPECT_EQ(ReasonOf(result.status), "diverged");
  EXPECT_EQ(result.summary.resyncs, 1u);
}

TEST_P(ResyncTest, RepeatsOnLaterDivergence) {
  uint64_t next = 3;
  const WorkerResult result = Train("diverged", 2, [&next](const Diverging& at) {
    if (at.opened != RoundId(next)) return false;
    next = 5;
    return true;
  });
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.summary.resyncs, 2u);
}

INSTANTIATE_TEST_SUITE_P(Overlap, ResyncTest, ::testing::Values(0, 1, kDeltas));

}  // namespace
}  // namespace distro::worker
