// Consequences of rounds for their members: probation, silence, times.
#include <limits>

#include "gmock/gmock.h"
#include "tests/server/round/manager_fixture.h"

namespace distro::server {
namespace {

using absl::Seconds;
using absl::StatusCode;

using ManagerMembersTest = testing::ManagerTest;

TEST_F(ManagerMembersTest, PutsJoinerOnProbation) {
  v1::RunConfig config = Config(1);
  config.set_probation_rounds(2);
  OpenRound(config, {"a"});
  Activate("b");
  EXPECT_EQ(StateOf("b"), v1::MEMBER_STATE_SYNCED);
  Round({"a"});  // gives b samples of round 2
  EXPECT_EQ(StateOf("b"), v1::MEMBER_STATE_PROBATION);
  Round({"a"});
  for (int left = 2; left > 0; --left) {
    EXPECT_EQ(observer_.expected, 1);
    Round({"b", "a"});
    ASSERT_EQ(observer_.last_header.members_size(), 2);
    EXPECT_EQ(observer_.last_header.members(1).weight(), 0u);
    EXPECT_FALSE(Included(1));
    EXPECT_TRUE(Included(0));
  }
  EXPECT_EQ(StateOf("b"), v1::MEMBER_STATE_ACTIVE);
  EXPECT_EQ(observer_.expected, 2);
  Round({"b", "a"});
  EXPECT_TRUE(Included(1));
  EXPECT_EQ(observer_.last_header.members(1).weight(), 1u);
}

TEST_F(ManagerMembersTest, GoesOnWithoutProbation) {
  OpenRound(Config(1), {"a"});
  Activate("b");
  Round({"a"});
  Round({"a"});
  Round({"a"});  // b has samples and sends nothing
  EXPECT_EQ(observer_.last_header.reason(), "complete");
  EXPECT_EQ(StateOf("b"), v1::MEMBER_STATE_PROBATION);
}

TEST_F(ManagerMembersTest, CallsSlowProbationLate) {
  v1::RunConfig config = Config(1);
  config.set_probation_rounds(2);
  OpenRound(config, {"a"});
  Activate("b");
  for (int round = 0; round < 4; ++round) Round({"a"});  // b has samples of two of them
  EXPECT_EQ(StateOf("b"), v1::MEMBER_STATE_PROBATION);
  Round({"a"});
  EXPECT_EQ(StateOf("b"), v1::MEMBER_STATE_LATE);
  Round({"b", "a"});
  EXPECT_EQ(observer_.last_header.members(1).weight(), 0u);
  EXPECT_EQ(StateOf("b"), v1::MEMBER_STATE_PROBATION);
  Round({"b", "a"});
  EXPECT_EQ(StateOf("b"), v1::MEMBER_STATE_ACTIVE);
}

TEST_F(ManagerMembersTest, SkipsProbationAfterRestart) {
  OpenRound(Config(2), {"a", "b"});
  Round({"a", "b"});
  OpenRound(Config(2), {"a", "b"});
  EXPECT_EQ(StateOf("b"), v1::MEMBER_STATE_ACTIVE);
  Round({"a", "b"});
  EXPECT_TRUE(Included(1));
}

TEST_F(ManagerMembersTest, SomebodySilentIsNotWaitedForUntilItIsHeard) {
  options_.suspect_after = Seconds(10);
  OpenRound(Config(2), {"a", "b"});
  Upload("a", 0);
  EXPECT_EQ(*manager_->round_thread().Step(), Seconds(10));
  clock_.Advance(Seconds(9));
  Beat("a");
  clock_.Advance(Seconds(1));
  Step();
  EXPECT_EQ(observer_.rounds, 1);
  EXPECT_EQ(observer_.last_header.members(1).state(), v1::MEMBER_STATE_SUSPECT);
  Beat("b");
  EXPECT_EQ(StateOf("b"), v1::MEMBER_STATE_ACTIVE);
}

TEST_F(ManagerMembersTest, TellsSinceWhenAWorkerIsInItsState) {
  const absl::Duration start = clock_.MonotonicNow();
  OpenRound(Config(2), {"a", "b"});
  clock_.Advance(Seconds(7));
  ASSERT_TRUE(manager_->decisions().Evict("b", "too slow").ok());
  Step();
  clock_.Advance(Seconds(5));
  const server::RunStatus status = manager_->status();
  EXPECT_THAT(status.since, ::testing::ElementsAre(start, start + Seconds(7)));
  EXPECT_EQ(status.now, start + Seconds(12));
}

TEST_F(ManagerMembersTest, TellsMedianOfEvaluations) {
  OpenRound(Config(3), {"a", "b", "c"});
  Round({"a", "b", "c"});
  EXPECT_EQ(observer_.eval_loss, std::nullopt);
  const auto evaluate = [this](const char* name, double loss) {
    v1::HeartbeatRequest beat = BeatOf(name);
    beat.mutable_telemetry()->set_evaluation_loss(loss);
    ASSERT_TRUE(manager_->Heartbeat(beat).ok());
  };
  evaluate("a", 2);
  evaluate("b", 3);
  Round({"a", "b", "c"});
  EXPECT_EQ(observer_.eval_loss, 2.5);
  evaluate("c", 1e300);
  Round({"a", "b", "c"});
  EXPECT_EQ(observer_.eval_loss, 3);
  for (const double bad :
       {-1.0, -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    evaluate("a", bad);  // the last one stays
    Round({"a", "b", "c"});
    EXPECT_EQ(observer_.eval_loss, 3);
  }
}

TEST_F(ManagerMembersTest, OnlyEvaluationsOfWorkersWhoseVotesCountAreTold) {
  v1::RunConfig config = Config(1);
  config.set_probation_rounds(5);
  OpenRound(config, {"a"});
  Activate("b");
  Round({"a"});
  EXPECT_EQ(StateOf("b"), v1::MEMBER_STATE_PROBATION);
  for (const auto& [name, loss] : {std::pair("a", 2.0), std::pair("b", 100.0)}) {
    v1::HeartbeatRequest beat = BeatOf(name);
    beat.mutable_telemetry()->set_evaluation_loss(loss);
    ASSERT_TRUE(manager_->Heartbeat(beat).ok());
  }
  Round({"a"});
  EXPECT_EQ(observer_.eval_loss, 2);
}

TEST_F(ManagerMembersTest, AdaptsDeadlineToLateWorkers) {
  v1::RunConfig config = Config(2);
  config.mutable_round_deadline()->set_seconds(60);
  config.mutable_min_round_deadline()->set_seconds(3);
  OpenRound(config, {"a", "b"});
  EXPECT_EQ(manager_->status().deadline, Seconds(60));
  clock_.Advance(Seconds(4));
  Round({"a", "b"});
  EXPECT_EQ(manager_->status().deadline, Seconds(6));  // 1.5 * 4 s
  Upload("a", 1);
  clock_.Advance(Seconds(6));
  Step();
  EXPECT_EQ(StateOf("b"), v1::MEMBER_STATE_LATE);
  clock_.Advance(Seconds(4));
  EXPECT_EQ(ReasonOf(Begin("b", 1).status()), "late");
  EXPECT_EQ(observer_.lateness, Seconds(4));
  EXPECT_EQ(observer_.timed["a"], absl::ZeroDuration());
  EXPECT_EQ(observer_.timed["b"], Seconds(10));
  Upload("a", 2);
  Step();
  EXPECT_EQ(manager_->status().deadline, Seconds(15));  // 1.5 * b's 10 s
}

TEST_F(ManagerMembersTest, RefusesSlowLink) {
  OpenRound(Config(1), {"a"});
  clock_.Advance(Seconds(1));
  Round({"a"});
  const uint64_t rate = manager_->Join(JoinOf("b"))->log_bytes_per_second();
  EXPECT_EQ(rate, ResultBytes(observer_.last_header));
  v1::JoinRequest slow = JoinOf("c");
  slow.set_download_bytes_per_second(rate);
  const absl::Status refused = manager_->Join(slow).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(refused), "too_slow");
  slow.set_download_bytes_per_second(2 * rate);
  EXPECT_TRUE(manager_->Join(slow).ok());
  Start(Config(1));
  EXPECT_EQ(manager_->Join(JoinOf("b"))->log_bytes_per_second(), rate);
}

TEST_F(ManagerMembersTest, TellsSubscriberOfPruning) {
  OpenRound(Config(1), {"a"});
  Round({"a"});
  Round({"a"});
  ASSERT_TRUE(log_file_->Prune(RoundId(1)).ok());
  v1::SubscribeRoundsRequest request;  // a follower has no session
  request.set_run_id(run_->run_id);
  const absl::Status refused = manager_->Subscribe(request).status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(refused), "pruned");
  request.set_from_round(1);
  request.set_last_hash(log_file_->HashBefore(RoundId(1)));
  EXPECT_TRUE(manager_->Subscribe(request).ok());
}

// It must not look like the end of the run.
TEST_F(ManagerMembersTest, EndsSubscriptionAtPrunedRound) {
  options_.ring_bytes = 0;
  OpenRound(Config(1), {"a"});
  Round({"a"});
  Round({"a"});
  v1::SubscribeRoundsRequest request;
  request.set_run_id(run_->run_id);
  auto subscription = *manager_->Subscribe(request);
  ASSERT_TRUE(log_file_->Prune(RoundId(1)).ok());
  const absl::Status status = subscription->Next().status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), "pruned");
}

TEST_F(ManagerMembersTest, RefusesOtherVersion) {
  Start(Config(1));
  v1::JoinRequest request = JoinOf("a");
  request.set_version("99.0.0");
  EXPECT_EQ(ReasonOf(manager_->Join(request).status()), "version");
}

}  // namespace
}  // namespace distro::server
