#include "server/round/round.h"

#include "common/base/checksum.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/round/run_fixture.h"

namespace distro::server {
namespace {

using absl::Seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using testing::UpdatePayload;

// Two segments; a and b count, c is on probation, and two workers are needed.
class RoundTest : public ::testing::Test {
 protected:
  explicit RoundTest(const v1::StepParameters& step = {}, Weighing weights = {})
      : round_(RoundId(4), 2, Slots(), Seconds(0), SegmentId(0), step, weights) {
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
    for (int i = 0; i < 3; ++i) {
      slots[i].set_worker(std::string(1, static_cast<char>('a' + i)));
      slots[i].set_samples(40);
    }
    return slots;
  }
  void Begin(const std::string& name) {
    v1::UploadHeader header;
    *header.mutable_worker() = Identity(name);
    const bool probation = members_.Find(name)->probation_left > 0;
    EXPECT_TRUE(round_.BeginUpload(header, Restrictions{.probation = probation}).ok());
  }
  void Put(const std::string& name, uint32_t segment) {
    EXPECT_TRUE(round_
                    .Put(Identity(name), SegmentId(segment),
                         ReceivedPayload(UpdatePayload(layout_, RoundId(4), SegmentId(segment), 1)),
                         Seconds(1))
                    .ok());
  }
  void SetResult(uint32_t segment, std::vector<LargestCodes> codes) {
    SegmentResult result;
    result.payload = std::make_shared<const std::string>();
    result.largest_codes = std::move(codes);
    round_.SetResult(SegmentId(segment), result);
  }
  RoundDecision Next() { return Decide(round_.Facts(members_), Seconds(1), {.min_workers = 2}); }
  // Members that the record includes in a segment.
  std::string Included(uint32_t segment) {
    const v1::RoundHeader header = MakeRoundHeader(round_.Outcome(members_, *method_, {}));
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
  const std::shared_ptr<const RoundMethod> method_ =
      MakeSignRounds({}, std::make_shared<const Layout>(layout_));
  Round round_;
};

TEST_F(RoundTest, PreviewsWhatPutReturns) {
  const ReceivedPayload payload(UpdatePayload(layout_, RoundId(4), SegmentId(0), 1));
  ReceivedPayload longer = payload;
  longer.bytes = std::make_shared<const std::string>(*payload.bytes + "x");
  const auto preview = [&](const char* worker, const ReceivedPayload& sent) {
    return round_.PreviewPut(worker, SegmentId(0), sent);
  };
  Begin("a");
  EXPECT_EQ(*preview("a", payload), PutResult::kNew);
  Put("a", 0);
  EXPECT_EQ(*preview("a", payload), PutResult::kAgain);
  EXPECT_EQ(preview("a", longer).status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(*preview("b", payload), PutResult::kNew);
  round_.Close(SegmentId(0));
  EXPECT_EQ(*preview("b", payload), PutResult::kLate);
  EXPECT_EQ(*preview("a", payload), PutResult::kAgain);
}

TEST_F(RoundTest, LeavesOutUpdateOnProbation) {
  for (const char* name : {"a", "b", "c"}) {
    Begin(name);
    for (const uint32_t segment : {0, 1}) Put(name, segment);
  }
  EXPECT_TRUE(round_.Complete("c"));
  EXPECT_FALSE(round_.Counts("c"));
  EXPECT_THAT(round_.Close(SegmentId(0)), SizeIs(2));
  EXPECT_EQ(Included(0), "ab");
}

TEST_F(RoundTest, ClosesWithoutProbation) {
  EXPECT_EQ(round_.expected(), 2);
  for (const char* name : {"a", "b"}) {
    Begin(name);
    for (const uint32_t segment : {0, 1}) Put(name, segment);
  }
  EXPECT_EQ(Next().action, RoundAction::kClose);
}

// Otherwise nobody could ever close this round: c has sent what it has, and nothing of it may be
// used.
TEST_F(RoundTest, UsesPromotedUpdate) {
  for (const char* name : {"a", "c"}) {
    Begin(name);
    for (const uint32_t segment : {0, 1}) Put(name, segment);
  }
  EXPECT_EQ(Next().action, RoundAction::kWait);
  members_.Leave(Identity("b"), "");
  round_.StopWaitingFor("b");
  ASSERT_EQ(members_.Find("c")->weight(), 1) << "it is needed";
  EXPECT_EQ(Next().action, RoundAction::kWait);
  round_.EndProbation("c");
  ASSERT_EQ(Next().action, RoundAction::kClose);
  EXPECT_THAT(round_.Close(SegmentId(0)), SizeIs(2));
  EXPECT_EQ(Included(0), "ac");
}

TEST_F(RoundTest, KeepsClosedSegment) {
  for (const char* name : {"a", "b", "c"}) {
    Begin(name);
    Put(name, 0);
  }
  EXPECT_THAT(round_.Close(SegmentId(0)), SizeIs(2));
  round_.EndProbation("c");
  for (const char* name : {"a", "b", "c"}) Put(name, 1);
  EXPECT_THAT(round_.Close(SegmentId(1)), SizeIs(3));
  EXPECT_EQ(Included(0), "ab");
  EXPECT_EQ(Included(1), "abc");
}

TEST_F(RoundTest, IgnoresPromotionBeforeUpdate) {
  round_.EndProbation("c");
  round_.EndProbation("z");
  EXPECT_TRUE(Next().enough_can_come);
  Begin("c");
  Put("c", 0);
  EXPECT_FALSE(round_.Counts("c"));
}

TEST_F(RoundTest, RemovesExpelledFromOpenSegments) {
  for (const char* name : {"a", "b"}) {
    Begin(name);
    for (const uint32_t segment : {0, 1}) Put(name, segment);
  }
  EXPECT_THAT(round_.Close(SegmentId(0)), SizeIs(2));
  round_.RemovePayloads("b");
  EXPECT_THAT(round_.Close(SegmentId(1)), SizeIs(1));
  EXPECT_EQ(Included(0), "ab");
  EXPECT_EQ(Included(1), "a");
}

TEST_F(RoundTest, OfSignsTheRecordHasNoMedians) {
  for (const char* name : {"a", "b"}) {
    Begin(name);
    for (const uint32_t segment : {0, 1}) Put(name, segment);
  }
  for (const uint32_t segment : {0, 1}) {
    round_.Close(SegmentId(segment));
    SetResult(segment, {});
  }
  EXPECT_THAT(round_.Outcome(members_, *method_, {}).scale_medians, IsEmpty());
}

class DataWeightTest : public RoundTest {
 protected:
  DataWeightTest() : RoundTest({}, {.by_data = true}) {
    EXPECT_TRUE(members_.Join(Identity("a"), "data", Seconds(0), /*own_tokens=*/1000).ok());
    EXPECT_TRUE(members_.Join(Identity("b"), "data", Seconds(0), /*own_tokens=*/500).ok());
    EXPECT_TRUE(members_.Join(Identity("c"), "data", Seconds(0), /*own_tokens=*/2000).ok());
    round_.SetExpected(members_);
  }
  void Send(const std::string& name, Restrictions restrictions) {
    v1::UploadHeader header;
    *header.mutable_worker() = Identity(name);
    EXPECT_TRUE(round_.BeginUpload(header, restrictions).ok());
    Put(name, 0);
  }
  std::vector<int> WeightsOf(uint32_t segment) {
    std::vector<int> weights;
    for (const SentPayload& sent : round_.Close(SegmentId(segment))) weights.push_back(sent.weight);
    return weights;
  }
};

TEST_F(DataWeightTest, FollowsWorkersData) {
  for (const char* name : {"a", "b", "c"}) Send(name, Restrictions{});
  EXPECT_THAT(WeightsOf(0), ElementsAre(8, 4, 15));
}

TEST_F(DataWeightTest, IsOneIfDoubted) {
  Send("a", Restrictions{.doubted = true});
  Send("b", Restrictions{});
  Send("c", Restrictions{.probation = true});
  EXPECT_THAT(WeightsOf(0), ElementsAre(1, 4));
}

TEST_F(DataWeightTest, IsFixedWithFirstBytes) {
  Send("a", Restrictions{});
  EXPECT_TRUE(members_.Join(Identity("a"), "data", Seconds(0), /*own_tokens=*/1).ok());
  round_.SetExpected(members_);
  Send("b", Restrictions{});
  EXPECT_THAT(WeightsOf(0), ElementsAre(8, 8)) << "b is the middle one now";
}

// Ten local steps of four samples.
class WindowTest : public RoundTest {
 protected:
  WindowTest() : RoundTest({}, {.window = 10, .samples_a_step = 4}) {}
  absl::Status Begin(const std::string& name, uint32_t steps, Restrictions restrictions) {
    v1::UploadHeader header;
    *header.mutable_worker() = Identity(name);
    header.set_local_steps(steps);
    return round_.BeginUpload(header, restrictions);
  }
  std::vector<int> WeightsOf(uint32_t segment) {
    std::vector<int> weights;
    for (const SentPayload& sent : round_.Close(SegmentId(segment))) weights.push_back(sent.weight);
    return weights;
  }
};

TEST_F(WindowTest, WeighsUpdateBySteps) {
  ASSERT_TRUE(Begin("a", 10, Restrictions{}).ok());
  ASSERT_TRUE(Begin("b", 3, Restrictions{}).ok());
  for (const char* name : {"a", "b"}) {
    for (const uint32_t segment : {0, 1}) Put(name, segment);
  }
  EXPECT_THAT(WeightsOf(0), ElementsAre(15, 5));
  EXPECT_THAT(WeightsOf(1), ElementsAre(15, 5));
  const RoundOutcome outcome = round_.Outcome(members_, *method_, {});
  EXPECT_EQ(outcome.members[0].member.weight(), 15u);
  EXPECT_EQ(outcome.members[0].member.local_steps(), 10u);
  EXPECT_EQ(outcome.members[1].member.weight(), 5u);
  EXPECT_EQ(outcome.members[1].member.local_steps(), 3u);
  EXPECT_EQ(outcome.members[2].member.local_steps(), 0u) << "it sent nothing";
}

TEST_F(WindowTest, StepsThatTheSlotHasNoSamplesForAreRefused) {
  for (const uint32_t steps : {0u, 11u, 1000u}) {
    const absl::Status refused = Begin("a", steps, Restrictions{});
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument) << steps;
    EXPECT_NE(refused.message().find("is outside 1 to 10"), std::string::npos) << refused;
  }
  EXPECT_TRUE(Begin("a", 1, Restrictions{}).ok()) << "nothing was taken";
}

TEST_F(WindowTest, StepsAreFixedWithTheFirstBytes) {
  ASSERT_TRUE(Begin("a", 4, Restrictions{}).ok());
  Put("a", 0);
  EXPECT_TRUE(absl::IsAlreadyExists(Begin("a", 5, Restrictions{})));
  EXPECT_TRUE(Begin("a", 4, Restrictions{}).ok());
}

TEST_F(WindowTest, WeighsDoubtedAsOneStep) {
  ASSERT_TRUE(Begin("a", 10, Restrictions{.doubted = true}).ok());
  Put("a", 0);
  EXPECT_THAT(WeightsOf(0), ElementsAre(1));
}

TEST_F(WindowTest, CountsDoubtedWorkerAsOneStepAfterProbation) {
  ASSERT_TRUE(Begin("c", 10, {.probation = true, .doubted = true}).ok());
  Put("c", 0);
  round_.EndProbation("c");
  EXPECT_THAT(WeightsOf(0), ElementsAre(1));
}

TEST_F(WindowTest, OnProbationTheWeightComesWithThePromotion) {
  ASSERT_TRUE(Begin("c", 4, Restrictions{.probation = true}).ok());
  for (const uint32_t segment : {0, 1}) Put("c", segment);
  EXPECT_THAT(WeightsOf(0), IsEmpty());
  round_.EndProbation("c");
  EXPECT_THAT(WeightsOf(1), ElementsAre(6));
}

TEST_F(RoundTest, WithoutAWindowThereAreNoStepsToState) {
  v1::UploadHeader header;
  *header.mutable_worker() = Identity("a");
  header.set_local_steps(1);
  EXPECT_TRUE(absl::IsInvalidArgument(round_.BeginUpload(header, Restrictions{})));
}

// Three tensors; all three workers count.
class DeltaRoundTest : public RoundTest {
 protected:
  DeltaRoundTest() : RoundTest(StepOfDeltas()) {
    for (const char* name : {"a", "b", "c"}) Begin(name);
    round_.EndProbation("c");
  }
  static v1::StepParameters StepOfDeltas() {
    v1::StepParameters step;
    step.mutable_deltas()->set_caps(std::string(3, '\xff'));
    return step;
  }
  // These send it, and then it closes; `codes` as Combine gives them.
  void Close(uint32_t segment, const std::vector<std::string>& senders,
             std::vector<LargestCodes> codes) {
    for (const std::string& name : senders) Put(name, segment);
    EXPECT_THAT(round_.Close(SegmentId(segment)), SizeIs(senders.size()));
    SetResult(segment, std::move(codes));
  }
  std::vector<uint32_t> Medians(const std::vector<uint32_t>& before = {}) {
    return round_.Outcome(members_, *deltas_, before).scale_medians;
  }
  static constexpr std::nullopt_t kNone = std::nullopt;
  const std::shared_ptr<const RoundMethod> deltas_ =
      MakeDeltaRounds({}, std::make_shared<const Layout>(layout_), {false, false, false});
};

TEST_F(DeltaRoundTest, MediansAreOfEachWorkersLargestCodeOverTheSegments) {
  Close(0, {"a", "b", "c"}, {{10, 20, kNone}, {30, 40, kNone}, {50, kNone, kNone}});
  Close(1, {"a", "b", "c"}, {{kNone, 60, 7}, {kNone, 39, kNone}, {kNone, 5, kNone}});
  EXPECT_THAT(Medians(), ElementsAre(1 + 30, 1 + 40, 0)) << "of the third only one has a code";
}

TEST_F(DeltaRoundTest, OfTwoWorkersThereIsNoMedian) {
  Close(0, {"a", "b"}, {{0, 1, 2}, {3, 4, 5}});
  Close(1, {"a", "b"}, {{0, 1, 2}, {3, 4, 5}});
  EXPECT_THAT(Medians(), ElementsAre(0, 0, 0));
}

TEST_F(DeltaRoundTest, FillsMissingCodesWithMedianBefore) {
  Close(0, {"a", "b", "c"}, {{10, 20, kNone}, {30, 40, kNone}, {50, kNone, kNone}});
  Close(1, {"a", "b", "c"}, {{kNone, kNone, 9}, {kNone, kNone, kNone}, {kNone, kNone, kNone}});
  EXPECT_THAT(Medians({1 + 60, 1 + 25, 1 + 70}), ElementsAre(1 + 30, 1 + 25, 1 + 70));
}

// b was late with segment 0: the codes are those of a and c, in the order of the payloads.
TEST_F(DeltaRoundTest, CodesAreOfWhoIsIncludedInTheSegment) {
  Close(0, {"a", "c"}, {{100, kNone, 9}, {200, kNone, 9}});
  Put("b", 0);
  Close(1, {"a", "b", "c"}, {{50, 0, kNone}, {60, 0, kNone}, {150, 0, kNone}});
  EXPECT_THAT(Medians(), ElementsAre(1 + 100, 1 + 0, 0));
}

TEST_F(DeltaRoundTest, KeepsCodesOfExpelled) {
  for (const char* name : {"a", "b", "c"}) Put(name, 0);
  round_.Close(SegmentId(0));
  round_.RemovePayloads("b");
  SetResult(0, {{10, 10, kNone}, {20, 20, kNone}, {30, 30, kNone}});
  Close(1, {"a", "c"}, {{kNone, 40, 40}, {kNone, 50, 50}});
  EXPECT_THAT(Medians(), ElementsAre(1 + 20, 1 + 40, 0));
}

}  // namespace
}  // namespace distro::server
