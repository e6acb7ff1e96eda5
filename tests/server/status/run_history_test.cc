#include "server/status/run_history.h"

#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"

namespace distro::server {
namespace {

using absl::Seconds;

class RunHistoryTest : public ::testing::Test {
 protected:
  // A round of workers a and b that takes `took`; bits: who is included in which segment.
  void Round(absl::Duration took, char segment_0, char segment_1,
             std::optional<double> loss = std::nullopt, std::optional<double> eval = std::nullopt) {
    v1::RoundHeader header;
    header.set_round(round_);
    for (const char* name : {"a", "b"}) {
      v1::Member* const member = header.add_members();
      member->set_name(name);
      member->set_incarnation(1);
      member->set_weight(weight_);
      member->set_local_steps(local_steps_);
      member->set_abstained(abstained_);
    }
    header.add_segments()->set_included(std::string(1, segment_0));
    header.add_segments()->set_included(std::string(1, segment_1));
    history_.OnRoundOpened(RoundId(round_++), 2);
    clock_.Advance(took);
    history_.OnRoundCommitted({.header = &header,
                               .duration = took,
                               .result_bytes = 100,
                               .tokens = 1,
                               .loss = loss,
                               .eval_loss = eval});
  }

  testing::FakeClock clock_;
  RunHistory history_{&clock_};
  uint64_t round_ = 0;
  uint32_t weight_ = 1;
  uint32_t local_steps_ = 0;
  bool abstained_ = false;
};

TEST_F(RunHistoryTest, TellsWhoWasIncludedLastAndWhyNot) {
  Round(Seconds(1), 3, 3);
  Round(Seconds(1), 1, 1);
  Round(Seconds(1), 3, 1);
  const HistoryView view = history_.View();
  EXPECT_EQ(view.rounds, 3u);
  const WorkerRounds& a = view.workers.at("a");
  EXPECT_EQ(a.included, 3u);
  EXPECT_EQ(a.last_included, 2u);
  EXPECT_EQ(a.excluded, "");
  const WorkerRounds& b = view.workers.at("b");
  EXPECT_EQ(b.included, 2u);
  EXPECT_EQ(b.excluded, "partly late");
  EXPECT_DOUBLE_EQ(*view.excluded_ratio, 2.0 / 6);
  Round(Seconds(1), 1, 1);
  EXPECT_EQ(history_.View().workers.at("b").excluded, "late");
  EXPECT_EQ(history_.View().workers.at("b").missed_in_a_row, 1u);
  EXPECT_EQ(history_.View().workers.at("b").last_included, 2u);
}

TEST_F(RunHistoryTest, CountsRoundsInWhichAllAbstainedUntilOneHasAnUpdate) {
  abstained_ = true;
  Round(Seconds(1), 0, 0);
  Round(Seconds(1), 0, 0);
  EXPECT_EQ(history_.View().empty_rounds, 2u);
  EXPECT_FALSE(history_.View().last_loss_missing);
  abstained_ = false;
  Round(Seconds(1), 3, 3, 5.0);
  EXPECT_EQ(history_.View().empty_rounds, 0u);
}

TEST_F(RunHistoryTest, TellsTheStepsOfTheLastIncludedUpdate) {
  Round(Seconds(1), 3, 3);
  EXPECT_EQ(history_.View().workers.at("a").local_steps, std::nullopt) << "no window";
  local_steps_ = 12;
  weight_ = 6;
  Round(Seconds(1), 3, 3);
  local_steps_ = 2;
  weight_ = 1;
  Round(Seconds(1), 1, 1);
  EXPECT_EQ(history_.View().workers.at("a").local_steps, 2u);
  EXPECT_EQ(history_.View().workers.at("b").local_steps, 12u) << "it was not in the last";
  EXPECT_EQ(history_.View().workers.at("b").weight, 6u);
}

TEST_F(RunHistoryTest, ProbationAndAbstainingAreReasonsOfTheirOwn) {
  weight_ = 0;
  Round(Seconds(1), 0, 0);
  EXPECT_EQ(history_.View().workers.at("a").excluded, "probation");
  EXPECT_EQ(history_.View().excluded_ratio, std::nullopt);
  weight_ = 1;
  abstained_ = true;
  Round(Seconds(1), 0, 0);
  EXPECT_EQ(history_.View().workers.at("a").excluded, "abstained");
}

TEST_F(RunHistoryTest, SlowsDownWithoutCommits) {
  EXPECT_EQ(history_.View().rounds_a_minute, std::nullopt);
  for (int i = 0; i < 40; ++i) Round(Seconds(2), 3, 3);
  EXPECT_DOUBLE_EQ(*history_.View().rounds_a_minute, 30);
  EXPECT_DOUBLE_EQ(*history_.View().round_seconds, 2);
  EXPECT_EQ(history_.View().result_bytes, 100);
  clock_.Advance(Seconds(66));  // a round's worth, and as long as the recent 32 took
  EXPECT_DOUBLE_EQ(*history_.View().rounds_a_minute, 15);
}

TEST_F(RunHistoryTest, KeepsLossesAndOnlyNewEvaluations) {
  Round(Seconds(1), 3, 3, 5.0, 6.0);
  Round(Seconds(1), 3, 3, 4.0, 6.0);
  Round(Seconds(1), 3, 3, 3.0, 5.5);
  EXPECT_EQ(history_.View().loss.size(), 3u);
  ASSERT_EQ(history_.View().eval_loss.size(), 2u);
  EXPECT_EQ(history_.View().eval_loss[1].round, 2u);
  EXPECT_FALSE(history_.View().last_loss_missing);
  Round(Seconds(1), 3, 3);
  EXPECT_TRUE(history_.View().last_loss_missing);
}

TEST_F(RunHistoryTest, TellsHowLongTheRoundIsOpenAndWhenUpdatesAreIn) {
  EXPECT_EQ(history_.View().open_for, std::nullopt);
  history_.OnRoundOpened(RoundId(0), 3);
  clock_.Advance(Seconds(5));
  for (const int seconds : {1, 9, 2}) history_.OnUpdateTimed("a", RoundId(0), Seconds(seconds));
  EXPECT_EQ(history_.View().open_for, Seconds(5));
  EXPECT_EQ(history_.View().most_expected, 3);
  EXPECT_EQ(history_.View().workers.at("a").update_seconds, 2);
}

TEST_F(RunHistoryTest, RemembersABoundedNumberOfWorkers) {
  for (size_t i = 0; i < kHistoryWorkers + 10; ++i)
    history_.OnUpdateTimed("w" + std::to_string(i), RoundId(0), Seconds(1));
  EXPECT_EQ(history_.View().workers.size(), kHistoryWorkers);
}

TEST_F(RunHistoryTest, ForgetsTheWorkerThatWasNotSeenTheLongest) {
  for (size_t i = 2; i < kHistoryWorkers; ++i)
    history_.OnUpdateTimed("w" + std::to_string(i), RoundId(0), Seconds(1));
  Round(Seconds(1), 3, 3);  // a and b
  Round(Seconds(1), 3, 3);
  history_.OnUpdateTimed("new", RoundId(2), Seconds(1));
  const HistoryView view = history_.View();
  EXPECT_EQ(view.workers.size(), kHistoryWorkers);
  EXPECT_TRUE(view.workers.contains("new"));
  EXPECT_EQ(view.workers.at("a").included, 2u);
  EXPECT_FALSE(view.workers.contains("w10"));  // the first of them by name
}

}  // namespace
}  // namespace distro::server
