#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/session/membership.h"
#include "tests/server/session/members_fixture.h"

namespace distro::server {
namespace {

using absl::Seconds;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kJoining = v1::MEMBER_STATE_JOINING;
constexpr auto kSynced = v1::MEMBER_STATE_SYNCED;
constexpr auto kProbation = v1::MEMBER_STATE_PROBATION;
constexpr auto kActive = v1::MEMBER_STATE_ACTIVE;
constexpr auto kLate = v1::MEMBER_STATE_LATE;
constexpr auto kSuspect = v1::MEMBER_STATE_SUSPECT;
constexpr auto kLeft = v1::MEMBER_STATE_LEFT;
constexpr auto kQuarantined = v1::MEMBER_STATE_QUARANTINED;

using MembershipStatesTest = RunMembersFixture;

TEST_F(MembershipStatesTest, BeforeTheRunBeginsThereIsNoProbation) {
  Sync("a");
  Sync("b");
  EXPECT_EQ(State("a"), kActive);
  EXPECT_EQ(State("b"), kActive);
  EXPECT_EQ(members_.Find("a")->probation_left, 0u);
  EXPECT_THAT(changes_, ElementsAre("a: joined", "a: caught_up", "a: no_probation", "b: joined",
                                    "b: caught_up", "b: no_probation"));
}

TEST_F(MembershipStatesTest, PutsJoinerOnProbation) {
  Start();
  Sync("d");
  EXPECT_EQ(State("d"), kSynced);
  EXPECT_THAT(members_.TakingPart(), Not(Contains("d")));
  members_.EnterSynced();
  EXPECT_EQ(State("d"), kProbation);
  EXPECT_THAT(members_.TakingPart(), Contains("d"));
  EXPECT_EQ(members_.Counted(), 3);
  EXPECT_EQ(members_.Find("d")->weight(), 0);
  for (uint32_t left = 3; left > 0; --left) {
    EXPECT_EQ(members_.Find("d")->probation_left, left);
    EXPECT_EQ(State("d"), kProbation);
    members_.Apply("d", MemberEvent::kGoodUpdate);
  }
  EXPECT_EQ(State("d"), kActive);
  EXPECT_EQ(members_.Find("d")->weight(), 1);
}

TEST_F(MembershipStatesTest, ProbationIsSkippedWhileTooFewOthersAreActive) {
  Start();
  members_.Leave(Identity("a", 1), "");
  members_.Leave(Identity("b", 1), "");
  Sync("d");
  EXPECT_EQ(State("d"), kActive);
  Sync("e");
  EXPECT_EQ(State("e"), kSynced) << "c and d are enough";
}

// Otherwise the round would wait for votes that nobody may cast.
TEST_F(MembershipStatesTest, ProbationEndsWhenTooFewOthersAreLeft) {
  Start();
  Sync("d");
  Sync("e");
  members_.EnterSynced();
  ASSERT_EQ(State("e"), kProbation);
  members_.Leave(Identity("a", 1), "");
  EXPECT_EQ(State("d"), kProbation);
  members_.Leave(Identity("b", 1), "");
  EXPECT_EQ(State("d"), kActive);
  EXPECT_EQ(members_.Find("d")->probation_left, 0u);
  EXPECT_EQ(State("e"), kProbation) << "one was needed, not two";
}

TEST_F(MembershipStatesTest, PutsNewProcessOnProbation) {
  Start();
  Sync("a", 2);
  members_.EnterSynced();
  EXPECT_EQ(State("a"), kProbation);
  EXPECT_EQ(members_.Find("a")->probation_left, 3u);
}

TEST_F(MembershipStatesTest, SuspectKeepsProbation) {
  Start();
  Sync("d");
  members_.EnterSynced();
  members_.Apply("d", MemberEvent::kGoodUpdate);
  for (const char* name : {"a", "b", "c"}) Beat(name, 1, 9, Progress::kCaughtUp, Seconds(5));
  ASSERT_THAT(members_.SuspectSilent(Seconds(5)), ElementsAre("d"));
  EXPECT_EQ(members_.Find("d")->weight(), 0);
  Beat("d", 1, 9, Progress::kCaughtUp, Seconds(6));
  EXPECT_EQ(State("d"), kProbation);
  EXPECT_EQ(members_.Find("d")->probation_left, 2u);
}

TEST_F(MembershipStatesTest, LateIsWaitedForAgainWhenInTime) {
  Start();
  members_.Apply("a", MemberEvent::kMissedDeadline);
  EXPECT_EQ(State("a"), kLate);
  members_.Apply("a", MemberEvent::kInTime);
  EXPECT_EQ(State("a"), kActive);
}

TEST_F(MembershipStatesTest, CallsSlowProbationLate) {
  Start();
  Sync("d");
  members_.EnterSynced();
  const uint32_t left = members_.Find("d")->probation_left;
  const auto miss = [this] { members_.Apply("d", MemberEvent::kMissedRound); };
  miss();
  miss();
  members_.Apply("d", MemberEvent::kInTime);
  miss();
  miss();
  EXPECT_EQ(State("d"), kProbation) << "not in a row";
  miss();
  EXPECT_EQ(State("d"), kLate);
  EXPECT_THAT(members_.Find("d")->reason, ::testing::HasSubstr("3 rounds in a row"));
  EXPECT_EQ(members_.Find("d")->weight(), 0);
  members_.Apply("d", MemberEvent::kInTime);
  EXPECT_EQ(State("d"), kProbation);
  EXPECT_EQ(members_.Find("d")->probation_left, left);
}

// A worker that resyncs by itself keeps its session: nobody waits for its download.
TEST_F(MembershipStatesTest, ReturnsToJoiningWithoutParameters) {
  Start();
  ASSERT_TRUE(Join("a").ok());
  EXPECT_EQ(State("a"), kActive) << "a join that is repeated says nothing";
  v1::HeartbeatRequest request;
  *request.mutable_worker() = Identity("a", 1);
  request.set_sequence(5);
  EXPECT_EQ(members_.Heartbeat(request, Progress::kBehind, Seconds(1)).directive,
            v1::DIRECTIVE_CONTINUE);
  EXPECT_EQ(State("a"), kJoining);
}

// Restart of the aggregator -----------------------------------------------------------------------

TEST_F(MembershipStatesTest, SkipsProbationAfterRestart) {
  members_.FixFingerprint("data");
  members_.Restore({Recorded("a", kActive), Recorded("b", kLate), Recorded("c", kSuspect),
                    Recorded("d", kProbation, 2), Recorded("e", kLeft), Recorded("f", kJoining),
                    Recorded("g", kSuspect, 1)});
  EXPECT_EQ(State("a"), kLeft);
  EXPECT_THAT(Reason("a"), HasSubstr("not come back"));
  EXPECT_EQ(Beat("a", 1, 1, Progress::kCaughtUp), v1::DIRECTIVE_REJOIN);
  EXPECT_TRUE(members_.TakingPart().empty());
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g"}) Sync(name, 5);
  EXPECT_EQ(State("a"), kActive);
  EXPECT_EQ(State("b"), kActive);
  EXPECT_EQ(State("c"), kActive);
  EXPECT_EQ(State("d"), kSynced);
  EXPECT_EQ(State("e"), kSynced);
  EXPECT_EQ(State("f"), kSynced);
  members_.EnterSynced();
  EXPECT_EQ(members_.Find("d")->probation_left, 2u) << "it goes on where it was";
  EXPECT_EQ(members_.Find("e")->probation_left, 3u);
  EXPECT_EQ(members_.Find("f")->probation_left, 3u);
  EXPECT_EQ(members_.Find("g")->probation_left, 1u);
}

// A run that was restored from an older copy: they are ahead of its log.
TEST_F(MembershipStatesTest, ResyncsWorkersAheadAfterRestart) {
  members_.FixFingerprint("data");
  members_.Restore({Recorded("a", kActive), Recorded("b", kActive), Recorded("c", kActive)});
  for (const char* name : {"a", "b", "c"}) {
    ASSERT_TRUE(Join(name).ok());
    EXPECT_EQ(Beat(name, 1, 9, Progress::kDiverged), v1::DIRECTIVE_RESYNC);
  }
  for (const char* name : {"a", "b", "c"}) {
    Beat(name, 1, 10, Progress::kCaughtUp);
    EXPECT_EQ(State(name), kActive);
  }
}

TEST_F(MembershipStatesTest, ComingBackCountsOnce) {
  members_.FixFingerprint("data");
  members_.Restore({Recorded("a", kActive), Recorded("b", kActive), Recorded("c", kActive)});
  for (const char* name : {"a", "b", "c"}) Sync(name);
  members_.Leave(Identity("a", 1), "");
  Sync("a", 2);
  EXPECT_EQ(State("a"), kSynced);
}

// State hashes ------------------------------------------------------------------------------------

TEST_F(MembershipStatesTest, RepeatsResyncUntilWorkerRejoins) {
  Start();
  Beat("a", 1, 20, Progress::kCaughtUp);
  Mismatch("a", 20);
  EXPECT_EQ(State("a"), kJoining);
  EXPECT_EQ(members_.Find("a")->weight(), 0);
  for (uint64_t sequence = 21; sequence < 23; ++sequence) {
    const HeartbeatAnswer answer = Answer("a", 1, sequence, Progress::kCaughtUp);
    EXPECT_EQ(answer.directive, v1::DIRECTIVE_RESYNC);
    EXPECT_THAT(answer.reason, HasSubstr("tensors t1"));
    EXPECT_EQ(State("a"), kJoining) << "its chain hash is right, its parameters are not";
  }
  ASSERT_TRUE(Join("a").ok());
  EXPECT_EQ(Beat("a", 1, 23, Progress::kCaughtUp), v1::DIRECTIVE_CONTINUE);
  EXPECT_EQ(State("a"), kSynced);
}

TEST_F(MembershipStatesTest, EndsResyncAtEarlierHeartbeat) {
  Start();
  v1::HeartbeatRequest request;
  *request.mutable_worker() = Identity("a", 1);
  Beat("a", 1, 20, Progress::kCaughtUp);
  Mismatch("a", 20);
  request.set_sequence(21);
  EXPECT_EQ(members_.Heartbeat(request, Progress::kBehind, Seconds(1)).directive,
            v1::DIRECTIVE_CONTINUE);
  Beat("b", 1, 20, Progress::kCaughtUp);
  Mismatch("b", 20);
  request.mutable_worker()->set_name("b");
  request.set_next_round(12);
  EXPECT_EQ(members_.Heartbeat(request, Progress::kBehind, Seconds(1)).directive,
            v1::DIRECTIVE_CONTINUE);
}

TEST_F(MembershipStatesTest, MismatchesAfterThreeResyncsWithinAHundredRoundsQuarantine) {
  Start();
  for (const uint64_t round : {10, 40, 70}) MismatchAndComeBack("a", round);
  Mismatch("a", 109);
  EXPECT_EQ(State("a"), kQuarantined);
  EXPECT_THAT(Reason("a"), HasSubstr("after 3 resyncs"));
  EXPECT_EQ(members_.Find("a")->quarantine_round, 109u);
}

TEST_F(MembershipStatesTest, RareMismatchesNeverQuarantine) {
  Start();
  for (uint64_t round = 10; round < 500; round += 40) MismatchAndComeBack("a", round);
}

// The update of the next round was on its way when the verdict fell, and the archiver may say the
// same again.
TEST_F(MembershipStatesTest, VerdictsOnTheStateBeforeAResyncDoNotCount) {
  Start();
  for (const uint64_t round : {10, 40, 70}) MismatchAndComeBack("a", round);
  for (const uint64_t round : {10, 40, 69, 70}) Mismatch("a", round);
  EXPECT_EQ(State("a"), kActive);
  Mismatch("a", 80);
  EXPECT_EQ(State("a"), kQuarantined);
}

TEST_F(MembershipStatesTest, VerdictsOnAWorkerThatResyncsDoNotCount) {
  Start();
  Mismatch("a", 10);
  for (uint64_t round = 11; round < 20; ++round) Mismatch("a", round);
  EXPECT_EQ(State("a"), kJoining);
  EXPECT_EQ(members_.Find("a")->mismatches.size(), 1u);
}

TEST_F(MembershipStatesTest, NeverQuarantinesTwoThatDiffer) {
  Start();
  members_.Leave(Identity("c", 1), "");
  for (uint64_t round = 10; round < 30; ++round) {
    for (const char* name : {"a", "b"})
      members_.Apply(name, MemberEvent::kHashDisputed, "", RoundId(round));
    for (const char* name : {"a", "b"}) {
      EXPECT_EQ(State(name), kJoining);
      ASSERT_TRUE(Join(name).ok());
      Beat(name, 1, round + 1, Progress::kCaughtUp);
    }
    EXPECT_EQ(State("a"), kActive) << "nobody else is there";
  }
}

}  // namespace
}  // namespace distro::server
