// Quarantine: its causes, its effects and its end.
#include "common/base/reason.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/session/membership.h"
#include "tests/server/session/members_fixture.h"

namespace distro::server {
namespace {

using absl::Seconds;
using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr auto kActive = v1::MEMBER_STATE_ACTIVE;
constexpr auto kLeft = v1::MEMBER_STATE_LEFT;
constexpr auto kQuarantined = v1::MEMBER_STATE_QUARANTINED;

using QuarantineTest = RunMembersFixture;

TEST_F(QuarantineTest, FollowsThreeInvalidUploads) {
  Start();
  for (int i = 0; i < 2; ++i) members_.Apply("a", MemberEvent::kInvalidUpdate);
  EXPECT_EQ(State("a"), kActive);
  members_.Apply("a", MemberEvent::kInvalidUpdate, "round 7: segment 1: checksum", RoundId(7));
  EXPECT_EQ(State("a"), kQuarantined);
  EXPECT_THAT(Reason("a"), HasSubstr("3 invalid uploads in a row: round 7"));
  EXPECT_EQ(members_.Find("a")->quarantine_round, 7u);
}

TEST_F(QuarantineTest, InvalidUploadsThatAreNotInARowDoNot) {
  Start();
  for (int i = 0; i < 20; ++i) {
    members_.Apply("a", MemberEvent::kInvalidUpdate);
    members_.Apply("a", MemberEvent::kInvalidUpdate);
    members_.Apply("a", i % 2 == 0 ? MemberEvent::kInTime : MemberEvent::kGoodUpdate);
  }
  EXPECT_EQ(State("a"), kActive);
}

TEST_F(QuarantineTest, KeepsMinWorkers) {
  Start();
  members_.Leave(Identity("c", 1), "");
  for (int i = 0; i < 10; ++i) members_.Apply("a", MemberEvent::kInvalidUpdate);
  members_.Apply("a", MemberEvent::kDisagrees);
  EXPECT_EQ(State("a"), kActive);
  Sync("c", 2);
  members_.EnterSynced();
  members_.Apply("a", MemberEvent::kDisagrees);
  EXPECT_EQ(State("a"), kActive) << "c is on probation";
  for (int i = 0; i < 3; ++i) members_.Apply("c", MemberEvent::kGoodUpdate);
  members_.Apply("a", MemberEvent::kDisagrees);
  EXPECT_EQ(State("a"), kQuarantined);
  members_.Apply("b", MemberEvent::kDisagrees);
  EXPECT_EQ(State("b"), kActive);
}

TEST_F(QuarantineTest, LetsOperatorGoBelowMinWorkers) {
  Start();
  for (const char* name : {"a", "b", "c"}) members_.Quarantine(Entry(name, "why"));
  EXPECT_EQ(members_.Count(kQuarantined), 3);
  EXPECT_TRUE(members_.TakingPart().empty());
}

TEST_F(QuarantineTest, RefusesCallsWithReason) {
  Start();
  members_.Quarantine(Entry("a", "evicted by an operator: bad memory"));
  for (const uint64_t incarnation : {1, 2}) {
    for (const absl::Status& status :
         {Join("a", incarnation), members_.CheckSession(Identity("a", incarnation), Seconds(1))}) {
      EXPECT_EQ(status.code(), StatusCode::kPermissionDenied);
      EXPECT_EQ(ReasonOf(status), "quarantined");
      EXPECT_THAT(status.message(), HasSubstr("bad memory"));
      EXPECT_THAT(status.message(), HasSubstr("distroctl admit a"));
    }
    const HeartbeatAnswer answer = Answer("a", incarnation, 5, Progress::kCaughtUp);
    EXPECT_EQ(answer.directive, v1::DIRECTIVE_QUARANTINED);
    EXPECT_THAT(answer.reason, HasSubstr("bad memory"));
  }
  members_.Leave(Identity("a", 1), "");
  EXPECT_TRUE(members_.ExpireLeases(Seconds(1000)).size() == 2u);
  EXPECT_EQ(State("a"), kQuarantined);
}

TEST_F(QuarantineTest, TakesUnknownName) {
  members_.Quarantine(Entry("z", "why"));
  EXPECT_EQ(Join("z").code(), StatusCode::kPermissionDenied);
}

TEST_F(QuarantineTest, AdmittedWorkersJoinLikeAnybody) {
  Start();
  for (int i = 0; i < 3; ++i) members_.Apply("a", MemberEvent::kInvalidUpdate);
  ASSERT_EQ(State("a"), kQuarantined);
  ASSERT_TRUE(members_.Admit("a").ok());
  EXPECT_EQ(State("a"), kLeft);
  EXPECT_EQ(Beat("a", 1, 1, Progress::kCaughtUp), v1::DIRECTIVE_REJOIN);
  Sync("a");
  Sync("d");  // so that it may be spared
  members_.EnterSynced();
  members_.Apply("a", MemberEvent::kInvalidUpdate);
  EXPECT_NE(State("a"), kQuarantined) << "the count began anew";
}

TEST_F(QuarantineTest, OnlyWhoIsInQuarantineIsAdmitted) {
  Start();
  EXPECT_EQ(members_.Admit("a").code(), StatusCode::kNotFound);
  EXPECT_EQ(members_.Admit("z").code(), StatusCode::kNotFound);
  EXPECT_EQ(State("a"), kActive);
}

TEST_F(QuarantineTest, SurvivesRestart) {
  Start();
  Sync("d");
  members_.Quarantine(Entry("z", "evicted by an operator"));
  for (int i = 0; i < 3; ++i)
    members_.Apply("a", MemberEvent::kInvalidUpdate, "checksum", RoundId(4));
  v1::StoredAdmission stored;
  stored.set_paused(true);
  members_.FillQuarantined(&stored);
  EXPECT_TRUE(stored.paused());
  ASSERT_EQ(stored.quarantined_size(), 2);
  EXPECT_EQ(stored.quarantined(0).name(), "a");
  EXPECT_EQ(stored.quarantined(0).round(), 4u);
  Membership restarted({.max_workers = 8, .lease = Seconds(30)}, &log_);
  for (const v1::QuarantinedWorker& entry : stored.quarantined()) restarted.Quarantine(entry);
  restarted.Restore({Recorded("a", kActive)});
  v1::StoredAdmission again = stored;
  restarted.FillQuarantined(&again);
  EXPECT_EQ(again.SerializeAsString(), stored.SerializeAsString());
}

TEST_F(QuarantineTest, ChangesOfTheListAreCounted) {
  Start();
  const uint64_t before = members_.quarantine_changes();
  members_.Quarantine(Entry("a", "why"));
  EXPECT_EQ(members_.quarantine_changes(), before + 1);
  ASSERT_TRUE(members_.Admit("a").ok());
  EXPECT_EQ(members_.quarantine_changes(), before + 2);
  members_.Leave(Identity("b", 1), "");
  EXPECT_EQ(members_.quarantine_changes(), before + 2);
}

// Invented names cannot fill the memory or the file of admissions.
TEST_F(QuarantineTest, OfTooManyNamesInQuarantineTheFirstIsForgotten) {
  const auto name = [](int i) { return absl::StrCat("w", 10000 + i); };
  for (int i = 0; i <= kQuarantinedKept; ++i) {
    v1::QuarantinedWorker entry = Entry(name(i), "why");
    entry.set_round(100 + i);
    const uint64_t before = members_.quarantine_changes();
    members_.Quarantine(entry);
    EXPECT_GT(members_.quarantine_changes(), before);
  }
  EXPECT_EQ(members_.Find(name(0)), nullptr);
  EXPECT_EQ(State(name(1)), kQuarantined);
  v1::StoredAdmission stored;
  members_.FillQuarantined(&stored);
  EXPECT_EQ(stored.quarantined_size(), kQuarantinedKept);
}

// Names that left are forgotten sooner than those in quarantine.
TEST_F(QuarantineTest, NamesThatLeftDoNotPushOutThoseInQuarantine) {
  members_.Quarantine(Entry("z", "why"));
  for (int i = 0; i < kLeftKept + 100; ++i) {
    ASSERT_TRUE(Join(absl::StrCat("w", i), 1, Seconds(i)).ok());
    members_.Leave(Identity(absl::StrCat("w", i), 1), "");
  }
  EXPECT_EQ(State("z"), kQuarantined);
  EXPECT_LE(members_.workers().size(), kLeftKept + 3u);
}

TEST_F(QuarantineTest, EventsOfUnknownNamesChangeNothing) {
  members_.Apply("z", MemberEvent::kDisagrees);
  EXPECT_EQ(members_.Find("z"), nullptr);
}

TEST_F(QuarantineTest, ReportsChangesOnce) {
  Start();
  changes_.clear();
  members_.Apply("a", MemberEvent::kMissedDeadline);
  members_.Apply("a", MemberEvent::kMissedDeadline);
  members_.Apply("a", MemberEvent::kInTime);
  members_.Quarantine(Entry("b", "why"));
  EXPECT_EQ(last_reason_, "why");
  members_.Quarantine(Entry("b", "another"));
  EXPECT_THAT(changes_, ElementsAre("a: missed_deadline", "a: in_time", "b: evicted"));
  EXPECT_EQ(Reason("b"), "another");
}

}  // namespace
}  // namespace distro::server
