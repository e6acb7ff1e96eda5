#include "server/round/round.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/round/run_fixture.h"

namespace distro::server {
namespace {

using absl::Seconds;
using ::testing::SizeIs;
using testing::UpdatePayload;

// Two segments; a and b count, c is on probation, and two workers are needed.
class RoundTest : public ::testing::Test {
 protected:
  RoundTest() {
    members_.FixFingerprint("data");
    members_.Restore({Recorded("a", v1::MEMBER_STATE_ACTIVE),
                      Recorded("b", v1::MEMBER_STATE_ACTIVE),
                      Recorded("c", v1::MEMBER_STATE_PROBATION)});
    for (const char* name : {"a", "b", "c"}) {
      EXPECT_TRUE(members_.Join(Identity(name), "data", Seconds(0)).ok());
      v1::HeartbeatRequest request;
      *request.mutable_worker() = Identity(name);
      request.set_sequence(1);
      request.set_next_round(4);
      members_.Heartbeat(request, Progress::kCaughtUp, Seconds(0));
    }
    members_.EnterSynced();
    round_.SetExpected(members_);
  }
  static v1::Member Recorded(const std::string& name, v1::MemberState state) {
    v1::Member member;
    member.set_name(name);
    member.set_state(state);
    member.set_probation_left(state == v1::MEMBER_STATE_PROBATION ? 2 : 0);
    return member;
  }
  static v1::WorkerIdentity Identity(const std::string& name) {
    v1::WorkerIdentity identity;
    identity.set_name(name);
    identity.set_incarnation(1);
    return identity;
  }
  static std::vector<v1::Slot> Slots() {
    std::vector<v1::Slot> slots(3);
    for (int i = 0; i < 3; ++i) slots[i].set_worker(std::string(1, static_cast<char>('a' + i)));
    return slots;
  }
  void Begin(const std::string& name) {
    v1::UploadHeader header;
    *header.mutable_worker() = Identity(name);
    EXPECT_TRUE(round_.BeginUpload(header, members_.Find(name)->probation_left > 0).ok());
  }
  void Put(const std::string& name, uint32_t segment) {
    EXPECT_TRUE(round_
                    .Put(Identity(name), SegmentId(segment),
                         UpdatePayload(layout_, RoundId(4), SegmentId(segment), 1), Seconds(1))
                    .ok());
  }
  RoundDecision Next() { return Decide(round_.Snapshot(members_), Seconds(1), {.min_workers = 2}); }
  // Members that the record includes in a segment.
  std::string Included(uint32_t segment) {
    const v1::RoundHeader header = MakeRoundHeader(round_.Outcome(members_));
    std::string names;
    for (int i = 0; i < 3; ++i) {
      if (header.segments(static_cast<int>(segment)).included()[0] >> i & 1)
        names += header.members(i).name();
    }
    return names;
  }

  Log log_{LogLevel::kError, Clock::Real(), [](absl::string_view) {}};
  Membership members_{
      {.max_workers = 8, .lease = Seconds(30), .min_workers = 2, .probation_rounds = 2}, &log_};
  const Layout layout_ = testing::SmallLayout();
  Round round_{RoundId(4), 2, Slots(), Seconds(0)};
};

TEST_F(RoundTest, AnUpdateOnProbationIsTakenAndNotUsed) {
  for (const char* name : {"a", "b", "c"}) {
    Begin(name);
    for (const uint32_t segment : {0, 1}) Put(name, segment);
  }
  EXPECT_TRUE(round_.Complete("c"));
  EXPECT_FALSE(round_.Counts("c"));
  EXPECT_THAT(round_.Close(SegmentId(0)), SizeIs(2));
  EXPECT_EQ(Included(0), "ab");
}

TEST_F(RoundTest, NobodyWaitsForAWorkerOnProbation) {
  EXPECT_EQ(round_.expected(), 2);
  for (const char* name : {"a", "b"}) {
    Begin(name);
    for (const uint32_t segment : {0, 1}) Put(name, segment);
  }
  EXPECT_EQ(Next().action, RoundAction::kClose);
}

// Otherwise nobody could ever close this round: c has sent what it has, and nothing of it may be
// used.
TEST_F(RoundTest, WhatWasSentOnProbationCountsWhenTheWorkerIsNeeded) {
  for (const char* name : {"a", "c"}) {
    Begin(name);
    for (const uint32_t segment : {0, 1}) Put(name, segment);
  }
  EXPECT_EQ(Next().action, RoundAction::kWait);
  members_.Leave(Identity("b"), "");
  round_.Forgo("b");
  ASSERT_EQ(members_.Find("c")->weight(), 1) << "it is needed";
  EXPECT_EQ(Next().action, RoundAction::kWait);
  round_.Promote("c");
  ASSERT_EQ(Next().action, RoundAction::kClose);
  EXPECT_THAT(round_.Close(SegmentId(0)), SizeIs(2));
  EXPECT_EQ(Included(0), "ac");
}

TEST_F(RoundTest, ASegmentThatClosedWithoutAWorkerStaysWithoutIt) {
  for (const char* name : {"a", "b", "c"}) {
    Begin(name);
    Put(name, 0);
  }
  EXPECT_THAT(round_.Close(SegmentId(0)), SizeIs(2));
  round_.Promote("c");
  for (const char* name : {"a", "b", "c"}) Put(name, 1);
  EXPECT_THAT(round_.Close(SegmentId(1)), SizeIs(3));
  EXPECT_EQ(Included(0), "ab");
  EXPECT_EQ(Included(1), "abc");
}

TEST_F(RoundTest, WhoSendsNothingYetHasTheWeightOfItsState) {
  round_.Promote("c");
  round_.Promote("z");
  EXPECT_TRUE(Next().enough_can_come);
  Begin("c");
  Put("c", 0);
  EXPECT_FALSE(round_.Counts("c"));
}

TEST_F(RoundTest, WhatAnExpelledWorkerSentLeavesTheOpenSegments) {
  for (const char* name : {"a", "b"}) {
    Begin(name);
    for (const uint32_t segment : {0, 1}) Put(name, segment);
  }
  EXPECT_THAT(round_.Close(SegmentId(0)), SizeIs(2));
  round_.Expel("b");
  EXPECT_THAT(round_.Close(SegmentId(1)), SizeIs(1));
  EXPECT_EQ(Included(0), "ab");
  EXPECT_EQ(Included(1), "a");
}

}  // namespace
}  // namespace distro::server
