// Events that end a manager, and events that do not: drains, a newer aggregator, a failing disk.
#include "gmock/gmock.h"
#include "tests/server/round/manager_fixture.h"

namespace distro::server {
namespace {

using absl::Seconds;
using absl::StatusCode;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ManagerEndTest : public testing::ManagerTest {
 protected:
  void OpenRound(v1::RunConfig config) {
    Start(config);
    Activate("a");
    Step();
    ASSERT_EQ(manager_->status().state, v1::RUN_STATE_TRAINING);
  }
  bool Drained() {
    const absl::Status status = Begin("a", manager_->status().round.value()).status();
    return ReasonOf(status) == "draining";
  }
};

TEST_F(ManagerEndTest, CommitsOpenRoundOnDrain) {
  OpenRound(Config(1));
  manager_->Drain();
  Step();
  EXPECT_FALSE(Drained());
  Upload("a", 0);
  Step();
  EXPECT_EQ(observer_.rounds, 1);
  EXPECT_EQ(log_file_->next_round(), RoundId(1));
  EXPECT_TRUE(Drained());
  EXPECT_EQ(manager_->status().state, v1::RUN_STATE_DRAINING);
}

TEST_F(ManagerEndTest, EndsDrainAtGrace) {
  OpenRound(Config(1));
  manager_->Drain();
  EXPECT_EQ(*manager_->round_thread().Step(), Seconds(30));
  clock_.Advance(Seconds(29));
  Step();
  EXPECT_FALSE(Drained());
  clock_.Advance(Seconds(1));
  Step();
  EXPECT_TRUE(Drained());
  EXPECT_EQ(observer_.rounds, 0);
}

TEST_F(ManagerEndTest, EndsDrainAtDeadline) {
  v1::RunConfig config = Config(1);
  config.mutable_round_deadline()->set_seconds(10);
  OpenRound(config);
  manager_->Drain();
  EXPECT_EQ(*manager_->round_thread().Step(), Seconds(10));
  clock_.Advance(Seconds(10));
  Step();
  EXPECT_TRUE(Drained());
}

TEST_F(ManagerEndTest, DrainsAtOnceWithoutRound) {
  Start(Config(1));
  manager_->Drain();
  Step();
  manager_->AwaitDrained(absl::InfiniteDuration());
  const absl::Status refused = manager_->Join(JoinOf("a")).status();
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(refused), "draining");
  EXPECT_EQ(RetryAfterOf(refused), Seconds(5));
}

// A worker reports a newer aggregator of this run: this one stops serving that worker.
TEST_F(ManagerEndTest, FencesRequestOfLaterEpoch) {
  for (int request = 0; request < 4; ++request) {
    OpenRound(Config(1));
    const uint64_t later = epoch_ + 1;
    absl::Status answer;
    if (request == 0) {
      v1::JoinRequest join = JoinOf("a");
      join.set_run_id(run_->run_id);
      join.set_epoch(later);
      answer = manager_->Join(join).status();
    } else if (request == 1) {
      v1::HeartbeatRequest beat = BeatOf("a");
      beat.set_epoch(later);
      answer = manager_->Heartbeat(beat).status();
    } else if (request == 2) {
      v1::UploadHeader header = HeaderOf("a", 0);
      header.set_epoch(later);
      answer = manager_->BeginUpload(header).status();
    } else {
      v1::SubscribeRoundsRequest subscribe;
      *subscribe.mutable_worker() = Identity("a");
      subscribe.set_run_id(run_->run_id);
      subscribe.set_epoch(later);
      answer = manager_->Subscribe(subscribe).status();
    }
    EXPECT_EQ(answer.code(), StatusCode::kFailedPrecondition) << request;
    EXPECT_EQ(ReasonOf(answer), "fenced") << request;
    // One peer's claim: no other peer is refused because of it.
    EXPECT_TRUE(manager_->round_thread().Step().ok()) << request;
    EXPECT_TRUE(manager_->Join(JoinOf("c")).ok()) << request;
  }
}

TEST_F(ManagerEndTest, EpochsThatFenceNobody) {
  OpenRound(Config(1));
  v1::JoinRequest other_run = JoinOf("b");
  other_run.set_epoch(epoch_ + 1);  // of a run that it does not name
  EXPECT_TRUE(manager_->Join(other_run).ok());
  v1::UploadHeader header = HeaderOf("a", 0);
  header.set_epoch(epoch_ - 1);
  EXPECT_EQ(ReasonOf(manager_->BeginUpload(header).status()), "wrong_epoch");
  v1::HeartbeatRequest stranger = BeatOf("a");
  stranger.mutable_worker()->set_incarnation(99);
  stranger.set_epoch(epoch_ + 1);
  EXPECT_EQ(manager_->Heartbeat(stranger)->directive(), v1::DIRECTIVE_REJOIN);
  ASSERT_TRUE(manager_->decisions().Evict("b", "").ok());
  v1::JoinRequest quarantined = JoinOf("b");
  quarantined.set_run_id(run_->run_id);
  quarantined.set_epoch(epoch_ + 1);
  EXPECT_EQ(ReasonOf(manager_->Join(quarantined).status()), "quarantined");
  Step();
}

// After any failure at any operation the commit waits, reports the reason, and continues by itself
// with the same bytes.
TEST_F(ManagerEndTest, HoldsCommitWhileDiskFails) {
  for (const DiskOperation operation :
       {DiskOperation::kCreate, DiskOperation::kWrite, DiskOperation::kFsync, DiskOperation::kLink,
        DiskOperation::kFsyncFolder}) {
    const std::string name(DiskOperationName(operation));
    OpenRound(Config(1));
    const uint64_t round = manager_->status().round.value();
    const int rounds = observer_.rounds;
    disk_.Fail({.operation = operation, .path_part = "rounds"});
    Upload("a", round);
    EXPECT_EQ(*manager_->round_thread().Step(), clock_.MonotonicNow() + Seconds(1)) << name;
    EXPECT_EQ(observer_.rounds, rounds) << name;
    EXPECT_EQ(log_file_->next_round(), RoundId(round)) << name;
    EXPECT_GT(observer_.errors[name], 0) << name;
    EXPECT_THAT(manager_->status().disk_error, HasSubstr(name));
    EXPECT_THAT(manager_->status().reason, HasSubstr("the log cannot be written"));
    clock_.Advance(Seconds(1));
    Step();
    EXPECT_EQ(observer_.rounds, rounds) << name;
    disk_.Heal();
    clock_.Advance(Seconds(1));
    Step();
    EXPECT_EQ(observer_.rounds, rounds + 1) << name;
    EXPECT_THAT(manager_->status().disk_error, IsEmpty());
    EXPECT_TRUE(log_file_->OpenRecord(RoundId(round)).ok()) << name;
    manager_ = nullptr;
  }
}

}  // namespace
}  // namespace distro::server
