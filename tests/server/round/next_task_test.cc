#include "server/round/next_task.h"

#include <string>

#include "gtest/gtest.h"
#include "tests/server/round/run_fixture.h"

namespace distro::server {
namespace {

using absl::Seconds;

// A run at round 4, whose workers are silent for too long after 30 s.
class NextTaskTest : public ::testing::Test {
 protected:
  void Join(const std::string& name, bool caught_up) {
    v1::WorkerIdentity identity;
    identity.set_name(name);
    identity.set_incarnation(1);
    ASSERT_TRUE(members_.Join(identity, "data", Seconds(0)).ok());
    v1::HeartbeatRequest request;
    *request.mutable_worker() = identity;
    request.set_sequence(1);
    request.set_next_round(4);
    members_.Heartbeat(request, caught_up ? Progress::kCaughtUp : Progress::kBehind, Seconds(0));
  }
  // Opens a round in which "a" has all samples.
  void Open() {
    v1::StartHeader start;
    v1::Slot* slot = start.add_slots();
    slot->set_worker("a");
    slot->set_samples(40);
    position_.Start(start);
    members_.FixFingerprint("data");
    Join("a", /*caught_up=*/true);
    position_.Open(members_, absl::InfiniteDuration(), SegmentId(0), Seconds(0));
  }
  RoundTask Next(absl::Duration now, bool started = true) const {
    return NextTask({.config = &run_->config,
                     .control = &control_,
                     .members = &members_,
                     .position = &position_,
                     .started = started,
                     .retry_at = -absl::InfiniteDuration(),
                     .grace_ends = Seconds(20)},
                    now);
  }

  Log log_{LogLevel::kError, Clock::Real(), [](absl::string_view) {}};
  std::shared_ptr<const RunIdentity> run_ = testing::SmallRun(testing::SmallConfig());
  Membership members_{{.max_workers = 8, .lease = Seconds(30), .probation_rounds = 2}, &log_};
  RunPosition position_{run_.get(), EpochId(1), 8, RoundId(4)};
  Control control_{&position_, &log_};
};

TEST_F(NextTaskTest, OnlySaysThatALeaseIsOver) {
  Join("a", /*caught_up=*/true);
  EXPECT_EQ(Next(Seconds(29)).kind, RoundTask::kOpen);
  EXPECT_EQ(Next(Seconds(30)).kind, RoundTask::kExpire);
  EXPECT_TRUE(members_.Find("a")->in_session());
  members_.ExpireLeases(Seconds(30));
  EXPECT_EQ(Next(Seconds(30)).kind, RoundTask::kOpen);
}

TEST_F(NextTaskTest, OnlySaysWhatTheRunWaitsFor) {
  const RoundTask task = Next(Seconds(0), /*started=*/false);
  EXPECT_EQ(task.kind, RoundTask::kNone);
  EXPECT_TRUE(task.show_pause);
  ASSERT_TRUE(task.state_now);
  EXPECT_EQ(task.state_now->state, v1::RUN_STATE_WAITING);
  EXPECT_EQ(control_.reason(), "starting");
}

TEST_F(NextTaskTest, WaitsUntilLeaseEnds) {
  Open();
  const RoundTask task = Next(Seconds(1));
  EXPECT_EQ(task.kind, RoundTask::kNone);
  EXPECT_FALSE(task.show_pause);
  EXPECT_EQ(task.at, Seconds(30));
}

TEST_F(NextTaskTest, EndsDrainWithoutOpenRound) {
  control_.Drain(Seconds(60));
  EXPECT_EQ(Next(Seconds(0)).kind, RoundTask::kDrained);
}

TEST_F(NextTaskTest, WorkersEnterBeforeACommitGivesSamples) {
  Open();
  Join("b", /*caught_up=*/true);
  for (SegmentId s(0); s.value() < run_->layout->segments(); s = s.Next())
    position_.round()->Close(s);
  ASSERT_EQ(members_.Find("b")->state, v1::MEMBER_STATE_SYNCED);
  EXPECT_EQ(Next(Seconds(1)).kind, RoundTask::kEnter);
  members_.EnterSynced();
  EXPECT_EQ(Next(Seconds(1)).kind, RoundTask::kCommit);
}

}  // namespace
}  // namespace distro::server
