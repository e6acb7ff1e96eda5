#include "server/session/membership.h"

#include "common/base/reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/session/members_fixture.h"

namespace distro::server {
namespace {

using absl::Seconds;
using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class MembershipTest : public MembersFixture {
 protected:
  MembershipTest()
      : MembersFixture({.max_workers = 2, .lease = Seconds(10), .suspect_after = Seconds(4)}) {}
};

TEST_F(MembershipTest, ActivatesWorkerAtHead) {
  ASSERT_TRUE(members_.Join(Identity("a", 1), "data", Seconds(0)).ok());
  EXPECT_EQ(State("a"), v1::MEMBER_STATE_JOINING);
  EXPECT_EQ(Beat("a", 1, 1, Progress::kBehind), v1::DIRECTIVE_CONTINUE);
  EXPECT_EQ(State("a"), v1::MEMBER_STATE_JOINING);
  EXPECT_EQ(Beat("a", 1, 2, Progress::kCaughtUp), v1::DIRECTIVE_CONTINUE);
  EXPECT_EQ(State("a"), v1::MEMBER_STATE_ACTIVE);
}

TEST_F(MembershipTest, StaleHeartbeatsOnlyProveLife) {
  ASSERT_TRUE(members_.Join(Identity("a", 1), "data", Seconds(0)).ok());
  Beat("a", 1, 5, Progress::kBehind);
  Beat("a", 1, 5, Progress::kCaughtUp, Seconds(9));
  EXPECT_EQ(State("a"), v1::MEMBER_STATE_JOINING);
  EXPECT_EQ(members_.Find("a")->next_round, 5u);
  EXPECT_TRUE(members_.ExpireLeases(Seconds(12)).empty());
}

TEST_F(MembershipTest, PrefersNewestJoin) {
  ASSERT_TRUE(members_.Join(Identity("a", 1), "data", Seconds(0)).ok());
  ASSERT_TRUE(members_.Join(Identity("a", 2), "data", Seconds(1)).ok());
  const absl::Status refused = members_.Join(Identity("a", 1), "data", Seconds(2));
  EXPECT_EQ(refused.code(), StatusCode::kAborted);
  EXPECT_EQ(ReasonOf(refused), "replaced");
  EXPECT_EQ(Beat("a", 1, 9, Progress::kCaughtUp), v1::DIRECTIVE_REPLACED);
  EXPECT_EQ(members_.CheckSession(Identity("a", 1), Seconds(2)).code(), StatusCode::kAborted);
  EXPECT_TRUE(members_.CheckSession(Identity("a", 2), Seconds(2)).ok());
  EXPECT_EQ(members_.Find("a")->incarnation, 2u);
}

TEST_F(MembershipTest, KeepsStateOnRepeatedJoin) {
  ASSERT_TRUE(members_.Join(Identity("a", 1), "data", Seconds(0)).ok());
  Beat("a", 1, 1, Progress::kCaughtUp);
  ASSERT_TRUE(members_.Join(Identity("a", 1), "data", Seconds(2)).ok());
  EXPECT_EQ(State("a"), v1::MEMBER_STATE_ACTIVE);
}

TEST_F(MembershipTest, OtherDataIsRefusedAndBothAreNamed) {
  ASSERT_TRUE(members_.Join(Identity("a", 1), "data-one", Seconds(0)).ok());
  const absl::Status status = members_.Join(Identity("b", 1), "data-two", Seconds(0));
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), "other_data");
  EXPECT_THAT(status.message(), HasSubstr("data-one"));
  EXPECT_THAT(status.message(), HasSubstr("data-two"));
}

TEST_F(MembershipTest, WrongDataOfAWorkerThatLeftBeforeTheStartIsForgotten) {
  ASSERT_TRUE(members_.Join(Identity("a", 1), "wrong", Seconds(0)).ok());
  members_.Leave(Identity("a", 1), "");
  EXPECT_TRUE(members_.Join(Identity("b", 1), "right", Seconds(0)).ok());
}

TEST_F(MembershipTest, DataThatTheRunNamesIsAskedOfTheFirstWorkerToo) {
  Membership members({.max_workers = 2, .lease = Seconds(30), .data_fingerprint = "right"}, &log_);
  const absl::Status status = members.Join(Identity("a", 1), "wrong", Seconds(0));
  EXPECT_EQ(ReasonOf(status), "other_data");
  EXPECT_THAT(status.message(), HasSubstr("the run's is right"));
  EXPECT_EQ(members.Join(Identity("a", 1), "right", Seconds(0)), absl::OkStatus());
  members.Leave(Identity("a", 1), "");
  EXPECT_EQ(ReasonOf(members.Join(Identity("b", 1), "wrong", Seconds(0))), "other_data");
}

TEST_F(MembershipTest, DataThatIsNotSaidIsOtherData) {
  const absl::Status status = members_.Join(Identity("a", 1), "", Seconds(0));
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(status), "other_data");
  EXPECT_THAT(status.message(), HasSubstr("\"any\""));
  EXPECT_EQ(members_.Find("a"), nullptr);
}

TEST_F(MembershipTest, ComparesNothingInRunOfAny) {
  Membership members({.max_workers = 4, .lease = Seconds(30), .data_fingerprint = "any"}, &log_);
  EXPECT_EQ(members.Join(Identity("a", 1), "", Seconds(0)), absl::OkStatus());
  EXPECT_EQ(members.Join(Identity("b", 1), "one", Seconds(0)), absl::OkStatus());
  EXPECT_EQ(members.Join(Identity("c", 1), "two", Seconds(0)), absl::OkStatus());
  EXPECT_EQ(members.fingerprint(), "any") << "of the start record";
  EXPECT_EQ(members.Join(Identity("d", 1), std::string(129, 'a'), Seconds(0)).code(),
            StatusCode::kInvalidArgument);
}

// A worker cannot open a run by what it says.
TEST_F(MembershipTest, TakesAnyOfRunOnly) {
  ASSERT_EQ(members_.Join(Identity("a", 1), "any", Seconds(0)), absl::OkStatus());
  EXPECT_EQ(ReasonOf(members_.Join(Identity("b", 1), "one", Seconds(0))), "other_data");
}

TEST_F(MembershipTest, NeverForgetsRunsData) {
  members_.FixFingerprint("right");
  EXPECT_EQ(members_.Join(Identity("a", 1), "wrong", Seconds(0)).code(),
            StatusCode::kFailedPrecondition);
}

TEST_F(MembershipTest, BadIdentitiesAreRefused) {
  EXPECT_EQ(members_.Join(Identity("A", 1), "data", Seconds(0)).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(members_.Join(Identity("", 1), "data", Seconds(0)).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(members_.Join(Identity("a", 0), "data", Seconds(0)).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(members_.Join(Identity("a", 1), std::string(1000, 'x'), Seconds(0)).code(),
            StatusCode::kInvalidArgument);
}

TEST_F(MembershipTest, OnlyMaxWorkersAreInSession) {
  ASSERT_TRUE(members_.Join(Identity("a", 1), "data", Seconds(0)).ok());
  ASSERT_TRUE(members_.Join(Identity("b", 1), "data", Seconds(0)).ok());
  const absl::Status full = members_.Join(Identity("c", 1), "data", Seconds(0));
  EXPECT_EQ(full.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(full), "full");
  EXPECT_TRUE(members_.Join(Identity("a", 2), "data", Seconds(0)).ok());
  members_.Leave(Identity("b", 1), "");
  EXPECT_TRUE(members_.Join(Identity("c", 1), "data", Seconds(0)).ok());
}

TEST_F(MembershipTest, ExpiresSilentWorker) {
  ASSERT_TRUE(members_.Join(Identity("a", 1), "data", Seconds(0)).ok());
  EXPECT_EQ(members_.NextExpiry(), Seconds(10));
  EXPECT_TRUE(members_.SuspectSilent(Seconds(9)).empty());  // nobody waits for it anyway
  EXPECT_TRUE(members_.ExpireLeases(Seconds(9)).empty());
  EXPECT_THAT(members_.ExpireLeases(Seconds(10)), ElementsAre("a"));
  EXPECT_EQ(Beat("a", 1, 1, Progress::kCaughtUp), v1::DIRECTIVE_REJOIN);
  const absl::Status gone = members_.CheckSession(Identity("a", 1), Seconds(11));
  EXPECT_EQ(gone.code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(ReasonOf(gone), "no_session");
  EXPECT_EQ(members_.NextExpiry(), absl::InfiniteDuration());
}

TEST_F(MembershipTest, OnlyTheProcessItselfEndsItsSession) {
  ASSERT_TRUE(members_.Join(Identity("a", 1), "data", Seconds(0)).ok());
  members_.Leave(Identity("a", 2), "");
  EXPECT_EQ(State("a"), v1::MEMBER_STATE_JOINING);
  members_.Leave(Identity("a", 1), "maintenance");
  EXPECT_EQ(State("a"), v1::MEMBER_STATE_LEFT);
  EXPECT_THAT(members_.Find("a")->reason, HasSubstr("maintenance"));
}

TEST_F(MembershipTest, LateWorkersTakePart) {
  ASSERT_TRUE(members_.Join(Identity("b", 1), "data", Seconds(0)).ok());
  ASSERT_TRUE(members_.Join(Identity("a", 1), "data", Seconds(0)).ok());
  Beat("a", 1, 1, Progress::kCaughtUp);
  Beat("b", 1, 1, Progress::kCaughtUp);
  members_.Apply("b", MemberEvent::kMissedDeadline);
  EXPECT_EQ(members_.Count(v1::MEMBER_STATE_LATE), 1);
  EXPECT_THAT(members_.TakingPart(), ElementsAre("a", "b"));
}

TEST_F(MembershipTest, CutsReasonBetweenCharacters) {
  ASSERT_TRUE(Join("a").ok());
  members_.Leave(Identity("a", 1), std::string(199, 'x') + "\u00e9");
  EXPECT_EQ(Reason("a"), "left: " + std::string(199, 'x'));
}

TEST_F(MembershipTest, SilenceMakesSuspectAndAnySignOfLifeBringsBack) {
  Sync("a");
  EXPECT_EQ(members_.NextExpiry(), Seconds(4));
  EXPECT_TRUE(members_.SuspectSilent(Seconds(3)).empty());
  EXPECT_THAT(members_.SuspectSilent(Seconds(4)), ElementsAre("a"));
  EXPECT_EQ(State("a"), v1::MEMBER_STATE_SUSPECT);
  EXPECT_THAT(members_.TakingPart(), ElementsAre("a"));
  EXPECT_EQ(members_.NextExpiry(), Seconds(10));
  EXPECT_TRUE(members_.CheckSession(Identity("a", 1), Seconds(5)).ok());
  EXPECT_EQ(State("a"), v1::MEMBER_STATE_ACTIVE);
  members_.SuspectSilent(Seconds(9));
  Beat("a", 1, 1, Progress::kBehind, Seconds(9));  // stale, but a sign of life
  EXPECT_EQ(State("a"), v1::MEMBER_STATE_ACTIVE);
}

TEST_F(MembershipTest, ExpiresSuspect) {
  Sync("a");
  members_.SuspectSilent(Seconds(4));
  EXPECT_THAT(members_.ExpireLeases(Seconds(10)), ElementsAre("a"));
  EXPECT_EQ(State("a"), v1::MEMBER_STATE_LEFT);
}

TEST_F(MembershipTest, TellsDivergedToResync) {
  Sync("a");
  for (uint64_t sequence = 7; sequence < 9; ++sequence) {
    const HeartbeatAnswer answer = Answer("a", 1, sequence, Progress::kDiverged);
    EXPECT_EQ(answer.directive, v1::DIRECTIVE_RESYNC);
    EXPECT_THAT(answer.reason, HasSubstr("chain hash"));
    EXPECT_EQ(State("a"), v1::MEMBER_STATE_JOINING);
  }
  EXPECT_EQ(Beat("a", 1, 9, Progress::kCaughtUp), v1::DIRECTIVE_CONTINUE);
  EXPECT_EQ(State("a"), v1::MEMBER_STATE_ACTIVE);
}

TEST_F(MembershipTest, DirectivesHaveReasonsAndContinueHasNone) {
  EXPECT_THAT(Answer("a", 1, 1, Progress::kBehind).reason, HasSubstr("join"));
  ASSERT_TRUE(Join("a", 1).ok());
  EXPECT_EQ(Answer("a", 1, 1, Progress::kBehind).reason, "");
  ASSERT_TRUE(Join("a", 2).ok());
  EXPECT_THAT(Answer("a", 1, 1, Progress::kBehind).reason, HasSubstr("newer process"));
}

TEST_F(MembershipTest, NamesThatLeftDoNotPileUp) {
  for (int i = 0; i < kLeftKept + 100; ++i) {
    const v1::WorkerIdentity identity = Identity(absl::StrCat("w", i), 1);
    ASSERT_TRUE(members_.Join(identity, "data", Seconds(i)).ok());
    members_.Leave(identity, "");
  }
  EXPECT_LE(members_.workers().size(), kLeftKept + 2u);
}

}  // namespace
}  // namespace distro::server
