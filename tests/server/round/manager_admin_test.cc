// Operators' decisions are durable before the answer, and in force after a restart.
#include "gmock/gmock.h"
#include "tests/server/round/manager_fixture.h"

namespace distro::server {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;

using ManagerAdminTest = testing::ManagerTest;

TEST_F(ManagerAdminTest, PausesAcrossRestart) {
  Start(Config(1));
  Activate("a");
  Step();
  ASSERT_TRUE(manager_->decisions().Pause("moving house").ok());
  Upload("a", 0);
  Step();
  EXPECT_EQ(observer_.rounds, 1);
  EXPECT_TRUE(observer_.last_header.paused());
  EXPECT_EQ(manager_->status().state, v1::RUN_STATE_PAUSED);
  EXPECT_EQ(manager_->status().reason, "paused: moving house");
  EXPECT_EQ(ReasonOf(Begin("a", 1).status()), "paused");
  Start(Config(1));
  Activate("a");
  Step();
  EXPECT_EQ(manager_->status().state, v1::RUN_STATE_PAUSED);
  EXPECT_EQ(manager_->Heartbeat(BeatOf("a"))->run_state(), v1::RUN_STATE_PAUSED);
  ASSERT_TRUE(manager_->decisions().Resume().ok());
  Step();
  EXPECT_EQ(manager_->status().state, v1::RUN_STATE_TRAINING);
  Upload("a", 1);
  Step();
  EXPECT_FALSE(observer_.last_header.paused());
}

TEST_F(ManagerAdminTest, DropsUnstoredDecision) {
  Start(Config(1));
  Activate("a");
  Step();
  disk_.Fail({.path_part = "admission"});
  EXPECT_EQ(ReasonOf(manager_->decisions().Pause("x")), "disk");
  EXPECT_EQ(ReasonOf(manager_->decisions().Evict("a", "x")), "disk");
  EXPECT_EQ(StateOf("a"), v1::MEMBER_STATE_ACTIVE);
  Upload("a", 0);
  Step();
  EXPECT_EQ(manager_->status().state, v1::RUN_STATE_TRAINING);  // round 1 is open
  EXPECT_EQ(manager_->status().round, RoundId(1));
}

// Its payload of a segment that is closed stays in the round; what is not closed goes.
TEST_F(ManagerAdminTest, ExpelsEvictedFromOpenRound) {
  Start(Config(2));
  Activate("a");
  Activate("b");
  Step();
  const auto ticket = Begin("b", 0);
  ASSERT_TRUE(ticket.ok());
  UploadSegments(*ticket, 0, 1);
  Upload("a", 0);
  Step();  // segment 0 closes
  UploadSegments(*ticket, 1, 2);
  ASSERT_TRUE(manager_->decisions().Evict("b", "runs elsewhere").ok());
  const auto refused = manager_->AddPayload(
      *ticket, SegmentId(2),
      ReceivedPayload(testing::UpdatePayload(*run_->layout, RoundId(0), SegmentId(2), 2)));
  EXPECT_EQ(refused.status().code(), StatusCode::kPermissionDenied);
  EXPECT_EQ(ReasonOf(refused.status()), "quarantined");
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("runs elsewhere"));
  Step();
  ASSERT_EQ(observer_.rounds, 1);
  EXPECT_EQ(observer_.last_header.segments(0).included(), "\3");
  EXPECT_EQ(observer_.last_header.segments(1).included(), "\1");
  EXPECT_EQ(observer_.last_header.segments(2).included(), "\1");
  EXPECT_EQ(observer_.last_header.members(1).state(), v1::MEMBER_STATE_QUARANTINED);
}

TEST_F(ManagerAdminTest, RefusesEvictedUntilAdmitted) {
  Start(Config(1));
  Activate("a");
  Step();
  ASSERT_TRUE(manager_->decisions().Evict("b", "").ok());
  EXPECT_EQ(ReasonOf(manager_->Join(JoinOf("b")).status()), "quarantined");
  Start(Config(1));
  EXPECT_EQ(StateOf("b"), v1::MEMBER_STATE_QUARANTINED);
  EXPECT_EQ(manager_->Heartbeat(BeatOf("b"))->directive(), v1::DIRECTIVE_QUARANTINED);
  EXPECT_EQ(ReasonOf(manager_->Join(JoinOf("b")).status()), "quarantined");
  EXPECT_EQ(manager_->decisions().Admit("c").code(), StatusCode::kNotFound);
  ASSERT_TRUE(manager_->decisions().Admit("b").ok());
  EXPECT_TRUE(manager_->Join(JoinOf("b")).ok());
  Start(Config(1));
  EXPECT_TRUE(manager_->Join(JoinOf("b")).ok());
}

// In any order: an admitted subscription can be closed, before it listens or reads.
TEST_F(ManagerAdminTest, EndsSubscriptionOfEvicted) {
  Start(Config(1));
  Activate("a");
  Activate("b");
  Step();
  v1::SubscribeRoundsRequest request;
  *request.mutable_worker() = Identity("b");
  request.set_run_id(run_->run_id);
  const auto subscription = manager_->Subscribe(request);
  ASSERT_TRUE(subscription.ok()) << subscription.status();
  ASSERT_TRUE(manager_->decisions().Evict("b", "runs elsewhere").ok());
  (*subscription)->Listen({});
  const absl::Status status = (*subscription)->Next().status();
  EXPECT_EQ(status.code(), StatusCode::kPermissionDenied) << status;
  EXPECT_EQ(ReasonOf(status), "quarantined");
}

TEST_F(ManagerAdminTest, EndsSubscriptionOfReplaced) {
  Start(Config(1));
  Activate("a");
  Step();
  v1::SubscribeRoundsRequest request;
  *request.mutable_worker() = Identity("a");
  request.set_run_id(run_->run_id);
  const auto subscription = manager_->Subscribe(request);
  ASSERT_TRUE(subscription.ok()) << subscription.status();
  ++incarnations_["a"];
  Join("a");
  (*subscription)->Listen({});
  EXPECT_EQ(ReasonOf((*subscription)->Next().status()), "replaced");
}

TEST_F(ManagerAdminTest, LongReasonsAndBadNamesAreRefused) {
  Start(Config(1));
  EXPECT_EQ(manager_->decisions().Pause(std::string(201, 'x')).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(manager_->decisions().Evict("a", std::string(201, 'x')).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(manager_->decisions().Evict("No Name", "").code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(manager_->decisions().Evict("a", std::string(200, 'x')).ok());
}

TEST_F(ManagerAdminTest, StoresQuarantineOfRule) {
  Start(Config(2));
  Activate("a");
  Activate("b");
  Step();
  const auto ticket = Begin("b", 0);
  ASSERT_TRUE(ticket.ok());
  disk_.Fail({.path_part = "admission"});
  for (int i = 0; i < 3; ++i) manager_->CountInvalidUpload(*ticket);
  EXPECT_EQ(StateOf("b"), v1::MEMBER_STATE_QUARANTINED);
  EXPECT_EQ(observer_.changes["invalid_updates"], 1);
  EXPECT_EQ(*manager_->round_thread().Step(), absl::Seconds(1));
  EXPECT_EQ(admission_->value().quarantined_size(), 0);
  disk_.Heal();
  clock_.Advance(absl::Seconds(1));
  Step();
  ASSERT_EQ(admission_->value().quarantined_size(), 1);
  EXPECT_EQ(admission_->value().quarantined(0).name(), "b");
}

TEST_F(ManagerAdminTest, KeepsLastWorker) {
  Start(Config(1));
  Activate("a");
  Step();
  const auto ticket = Begin("a", 0);
  ASSERT_TRUE(ticket.ok());
  for (int i = 0; i < 10; ++i) manager_->CountInvalidUpload(*ticket);
  EXPECT_EQ(StateOf("a"), v1::MEMBER_STATE_ACTIVE);
}

}  // namespace
}  // namespace distro::server
