// A worker that is stopped or killed and continues with its saved state.
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/file.h"
#include "gtest/gtest.h"
#include "tests/testing/worker/training.h"
#include "tests/worker/train/forwarding_exchange.h"
#include "tests/worker/train/local_aggregator.h"
#include "worker/train/training_run.h"

namespace distro::worker {
namespace {

using testing::TinyRun;
using testing::TrainTogether;
using testing::TrainWorker;
using testing::WorkerResult;

constexpr uint64_t kRounds = 10;
constexpr uint32_t kDeltas = 2;  // where an overlap is asked for: a run of deltas

// Stops as by a signal: once the update of a round was handed in, before it, or once a round is
// open.
class Stopping final : public ForwardingExchange {
 public:
  using ForwardingExchange::ForwardingExchange;
  void Upload(RoundUpdate update) override {
    const RoundId round = update.round;
    inner_.Upload(std::move(update));
    if (on_upload) on_upload(round);
    if (round == stop_after_upload) Stop();
  }
  absl::StatusOr<RoundEvent> Next() override {
    absl::StatusOr<RoundEvent> event = inner_.Next();
    if (event.ok() && std::holds_alternative<OpenedRound>(*event)) {
      open_ = std::get<OpenedRound>(*event).round;
      if (open_ >= stop_at_open) Stop();
    }
    return event;
  }
  // A worker checks before it computes and before it sends.
  bool Ready() override {
    if (open_ == stop_before_upload && ++looks_ == 2) Stop();
    return inner_.Ready();
  }

  RoundId stop_after_upload{UINT64_MAX};
  RoundId stop_before_upload{UINT64_MAX};
  RoundId stop_at_open{UINT64_MAX};
  std::function<void(RoundId)> on_upload;

 private:
  RoundId open_{UINT64_MAX - 1};
  int looks_ = 0;
};

// Keeps its update of one round until it is told.
class Gated final : public ForwardingExchange {
 public:
  Gated(server::LocalAggregator* aggregator, RoundId round, absl::Notification* open)
      : ForwardingExchange(aggregator), round_(round), open_(open) {}
  void Upload(RoundUpdate update) override {
    if (update.round == round_) open_->WaitForNotification();
    inner_.Upload(std::move(update));
  }

 private:
  const RoundId round_;
  absl::Notification* const open_;
};

class TrainingStateTest : public ::testing::Test {
 protected:
  // Without probation: updates of a worker that came back count.
  std::unique_ptr<server::LocalAggregator> MakeRun(int workers, uint32_t overlap,
                                                   const std::string& name = "tiny",
                                                   uint32_t segment_blocks = 8) const {
    v1::RunConfig config = overlap == kDeltas
                               ? tiny_.DeltaConfig(workers, kRounds, /*local_steps=*/2)
                               : tiny_.Config(workers, kRounds, overlap);
    config.set_name(name);
    config.set_segment_blocks(segment_blocks);
    config.set_probation_rounds(0);
    return Aggregate(tiny_, config);
  }
  WorkerResult Undisturbed(uint32_t overlap) const {
    const auto aggregator = MakeRun(2, overlap);
    server::LocalExchange a(aggregator.get()), b(aggregator.get());
    return TrainTogether(tiny_,
                         {{{.name = "w0", .exchange = &a}, {.name = "w1", .exchange = &b}}})[0];
  }
  WorkerResult TrainAlone(server::LocalAggregator* aggregator, const std::string& name) const {
    server::LocalExchange exchange(aggregator);
    return TrainWorker(tiny_, {.name = name, .exchange = &exchange, .state_dir = dir_});
  }
  void ExpectTheSameBits(uint32_t overlap, RoundId Stopping::*stop) const;
  bool SetAside() const { return ReadFile(dir_ + "/worker.state.tiny-local.aside").ok(); }

  const TinyRun tiny_;
  const std::string dir_ = tiny_.File("state");
};

// w0 stops with round 4; w1's update of it comes when w0 is back and has offered its own.
void TrainingStateTest::ExpectTheSameBits(uint32_t overlap, RoundId Stopping::*stop) const {
  const WorkerResult undisturbed = Undisturbed(overlap);
  const auto aggregator = MakeRun(2, overlap);
  absl::Notification back;
  Gated other(aggregator.get(), RoundId(4), &back);
  std::thread w1(
      [&] { EXPECT_TRUE(TrainWorker(tiny_, {.name = "w1", .exchange = &other}).status.ok()); });
  Stopping first(aggregator.get()), second(aggregator.get());
  first.*stop = RoundId(4);
  const WorkerResult stopped =
      TrainWorker(tiny_, {.name = "w0", .exchange = &first, .state_dir = dir_, .leaves = false});
  EXPECT_EQ(stopped.status.code(), absl::StatusCode::kCancelled);
  std::vector<uint64_t> offered;
  second.on_upload = [&](RoundId round) {
    if (round == RoundId(4)) back.Notify();
    offered.push_back(round.value());
  };
  const WorkerResult result =
      TrainWorker(tiny_, {.name = "w0", .exchange = &second, .state_dir = dir_, .incarnation = 99});
  w1.join();
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(offered, (std::vector<uint64_t>{4, 5, 6, 7, 8, 9}));
  EXPECT_EQ(result.summary.state_hash, undisturbed.summary.state_hash);
  EXPECT_EQ(result.momentum_bits, undisturbed.momentum_bits);
  EXPECT_FALSE(SetAside());
}

class RestartTest : public TrainingStateTest, public ::testing::WithParamInterface<int> {};

TEST_P(RestartTest, KeepsBits) { ExpectTheSameBits(GetParam(), &Stopping::stop_after_upload); }

INSTANTIATE_TEST_SUITE_P(Overlap, RestartTest, ::testing::Values(0, 1, kDeltas));

// The inner optimizer has the steps of the round already: their change is kept, to be sent.
TEST_F(TrainingStateTest, KeepsBitsBetweenStepsAndUpload) {
  ExpectTheSameBits(kDeltas, &Stopping::stop_before_upload);
}

// Saved after the upload of round 3, killed in round 6: the fate of update 3 is still learned from
// the log; rounds 4 to 6 of the killed process change nothing.
TEST_F(TrainingStateTest, LosesOnlyRoundsAfterSave) {
  std::vector<uint32_t> after_round_3;
  {
    const auto aggregator = MakeRun(2, 0);
    Stopping exchange(aggregator.get());
    server::LocalExchange other(aggregator.get());
    exchange.stop_at_open = RoundId(4);
    after_round_3 =
        TrainTogether(
            tiny_, {{{.name = "w0", .exchange = &exchange}, {.name = "w1", .exchange = &other}}})[0]
            .momentum_bits;
  }
  const auto aggregator = MakeRun(2, 0);
  absl::Notification has_come;
  Gated other(aggregator.get(), RoundId(7), &has_come);
  std::thread w1([&] { TrainWorker(tiny_, {.name = "w1", .exchange = &other}); });
  Stopping killed(aggregator.get()), back(aggregator.get());
  killed.stop_after_upload = RoundId(6);
  const std::string state = dir_ + "/worker.state", copy = tiny_.File("copy");
  killed.on_upload = [&](RoundId round) {
    if (round == RoundId(6)) std::filesystem::copy_file(state, copy);
  };
  TrainWorker(tiny_, {.name = "w0",
                      .exchange = &killed,
                      .state_dir = dir_,
                      .state_interval_rounds = 4,
                      .leaves = false});
  std::filesystem::rename(copy, state);
  back.stop_at_open = RoundId(6);
  const WorkerResult result =
      TrainWorker(tiny_, {.name = "w0", .exchange = &back, .state_dir = dir_, .incarnation = 99});
  has_come.Notify();
  w1.join();
  EXPECT_EQ(result.status.code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(result.momentum_bits, after_round_3);
}

TEST_F(TrainingStateTest, StateOfAnotherRunIsSetAside) {
  const auto first = MakeRun(1, 0), second = MakeRun(1, 0, "other");
  ASSERT_TRUE(TrainAlone(first.get(), "w0").status.ok());
  const WorkerResult result = TrainAlone(second.get(), "w0");
  ASSERT_TRUE(result.status.ok()) << result.status;
  EXPECT_EQ(result.summary.run_id, "other-local");
  EXPECT_TRUE(SetAside());
}

// An operator who swaps two folders, and swaps them back, has lost neither state.
TEST_F(TrainingStateTest, IsSetAsideByRun) {
  const auto first = MakeRun(1, 0), second = MakeRun(1, 0, "other"), third = MakeRun(1, 0);
  for (const auto* run : {&first, &second, &third})
    ASSERT_TRUE(TrainAlone(run->get(), "w0").status.ok());
  EXPECT_TRUE(SetAside());
  EXPECT_TRUE(ReadFile(dir_ + "/worker.state.other-local.aside").ok());
}

TEST_F(TrainingStateTest, StateOfAnotherLayoutIsSetAside) {
  const auto first = MakeRun(1, 0), second = MakeRun(1, 0, "tiny", 4);
  ASSERT_TRUE(TrainAlone(first.get(), "w0").status.ok());
  ASSERT_TRUE(TrainAlone(second.get(), "w0").status.ok());
  EXPECT_TRUE(SetAside());
}

TEST_F(TrainingStateTest, StateOfAnotherWorkerIsSetAside) {
  const auto first = MakeRun(1, 0), second = MakeRun(1, 0);
  ASSERT_TRUE(TrainAlone(first.get(), "w0").status.ok());
  ASSERT_TRUE(TrainAlone(second.get(), "w1").status.ok());
  EXPECT_TRUE(SetAside());
}

// Reports that the run is far ahead, and delivers none of its rounds.
class FarAhead final : public ForwardingExchange {
 public:
  FarAhead(server::LocalAggregator* aggregator, uint64_t rounds)
      : ForwardingExchange(aggregator), rounds_(rounds) {}
  absl::StatusOr<v1::JoinResponse> Join(const v1::JoinRequest& request) override {
    absl::StatusOr<v1::JoinResponse> response = inner_.Join(request);
    response->set_head_round(rounds_);
    return response;
  }
  absl::StatusOr<RoundEvent> Next() override { return absl::OutOfRangeError("enough"); }

 private:
  const uint64_t rounds_;
};

TEST_F(TrainingStateTest, StateOfARoundLongAgoIsSetAside) {
  for (const uint64_t ahead :
       {TrainingRun::kOldestStateRounds, TrainingRun::kOldestStateRounds + 1}) {
    const auto first = MakeRun(1, 0), second = MakeRun(1, 0);
    ASSERT_TRUE(TrainAlone(first.get(), "w0").status.ok());
    FarAhead exchange(second.get(), kRounds + ahead);
    ASSERT_TRUE(absl::IsOutOfRange(
        TrainWorker(tiny_, {.name = "w0", .exchange = &exchange, .state_dir = dir_}).status));
    EXPECT_EQ(SetAside(), ahead > TrainingRun::kOldestStateRounds);
  }
}

}  // namespace
}  // namespace distro::worker
