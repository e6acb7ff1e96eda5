#include "common/run/round/record.h"

#include "common/method/signs/step.h"
#include "common/run/record/committed_round.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/small_run.h"

namespace distro {
namespace {

using ::testing::ElementsAre;

const std::vector<std::string> kWorkers = {"a", "b"};

std::vector<uint64_t> Firsts(const std::vector<v1::Slot>& slots) {
  std::vector<uint64_t> firsts;
  for (const v1::Slot& slot : slots) firsts.push_back(slot.first_sample());
  return firsts;
}

v1::StartHeader Start(const Layout& layout) {
  return MakeStartHeader({.run_id = "small-0001",
                          .data_fingerprint = "data",
                          .state_hash = testing::kInitialStateHash},
                         layout, testing::SmallConfig(), kWorkers);
}

RecordedMember MemberOf(const std::string& name, std::vector<bool> included) {
  RecordedMember recorded;
  recorded.member.set_name(name);
  recorded.member.set_state(v1::MEMBER_STATE_ACTIVE);
  recorded.member.set_weight(1);
  recorded.included = std::move(included);
  return recorded;
}

TEST(SlotPlanTest, BeginsWithTwoRoundsAndMovesOnByRecords) {
  SlotPlan plan = PlanOf(Start(testing::SmallLayout()));
  EXPECT_THAT(Firsts(plan.slots), ElementsAre(0, 2));
  EXPECT_THAT(Firsts(plan.next_slots), ElementsAre(4, 6));
  v1::RoundHeader header;
  plan.Give({"b"}, testing::SmallConfig(), plan.slots, &header);
  EXPECT_EQ(header.next_sample(), 10u);
  plan.Advance(header);
  EXPECT_THAT(Firsts(plan.slots), ElementsAre(4, 6));
  EXPECT_THAT(Firsts(plan.next_slots), ElementsAre(8));
  EXPECT_EQ(plan.pool.next_sample(), 10u);
}

TEST(SlotPlanTest, PlansNothingAfterLastRound) {
  v1::RunConfig config = testing::SmallConfig();
  config.set_rounds(1);
  const v1::StartHeader start = MakeStartHeader({}, testing::SmallLayout(), config, kWorkers);
  EXPECT_EQ(start.slots_size(), 2);
  EXPECT_EQ(start.next_slots_size(), 0);
  EXPECT_EQ(start.next_sample(), 4u);
}

v1::StepParameters DeltaStep() {
  v1::StepParameters step;
  step.mutable_deltas();
  return step;
}

// A late gradient of signs is used in the next round.
TEST(SlotPlanTest, WithSignsNothingComesBack) {
  const SlotPlan plan = PlanOf(Start(testing::SmallLayout()));
  v1::RoundHeader header =
      MakeRoundHeader({.members = {MemberOf("a", {}), MemberOf("b", {})}, .segments = {{}}});
  plan.Give({"a"}, testing::SmallConfig(), plan.slots, &header);
  EXPECT_EQ(header.unread_size(), 0);
  EXPECT_EQ(header.slots(0).first_sample(), 8u);
}

// Samples that a worker did not read are assigned to another.
TEST(SlotPlanTest, ReturnsUnreadSamples) {
  SlotPlan plan = PlanOf(Start(testing::SmallLayout()));  // 2 samples each
  RoundOutcome outcome{
      .step = DeltaStep(), .members = {MemberOf("a", {true}), MemberOf("b", {})}, .segments = {{}}};
  v1::RoundHeader header = MakeRoundHeader(outcome);
  plan.Give({"a", "b"}, testing::SmallConfig(), plan.slots, &header);
  plan.Advance(header);
  EXPECT_THAT(Firsts(plan.next_slots), ElementsAre(2, 8)) << "b was included nowhere";
  v1::RoundHeader nobody;
  plan.Give({}, testing::SmallConfig(), {}, &nobody);
  EXPECT_EQ(nobody.unread_size(), 0);
  v1::RoundHeader neither = MakeRoundHeader(
      {.step = DeltaStep(), .members = {MemberOf("a", {}), MemberOf("b", {})}, .segments = {{}}});
  plan.Give({"a"}, testing::SmallConfig(), plan.slots, &neither);
  EXPECT_EQ(neither.slots(0).first_sample(), 4u);
  ASSERT_EQ(neither.unread_size(), 1);
  EXPECT_EQ(neither.unread(0).first_sample(), 6u);
  EXPECT_EQ(neither.unread(0).samples(), 2u);
  EXPECT_EQ(neither.next_sample(), 10u);
}

TEST(RecordTest, CountsSamplesOfStepsDone) {
  v1::RunConfig config = testing::SmallConfig();
  config.set_samples_per_worker(4);
  config.set_sequence_length(16);
  v1::Slot slot;
  slot.set_samples(12);
  RoundOutcome outcome{.members = {MemberOf("a", {true})}, .segments = {{}}};
  outcome.members[0].member.set_local_steps(2);
  const v1::RoundHeader header = MakeRoundHeader(outcome);
  EXPECT_EQ(ReadSamples(header, 0, slot, 4), 8u);
  EXPECT_EQ(IncludedTokens(header, {slot}, config), 8u * 16);
  outcome.members[0].member.set_local_steps(0);
  EXPECT_EQ(ReadSamples(MakeRoundHeader(outcome), 0, slot, 4), 12u) << "no window";
}

// Readers of the log and followers accept the records made here.
TEST(RecordTest, MakesReadableHeader) {
  const Layout layout = testing::SmallLayout();
  const std::vector<bool> all(layout.segments(), true);
  RoundOutcome outcome{.round = RoundId(3),
                       .epoch = EpochId(2),
                       .step = SignStep(testing::SmallConfig(), RoundId(3)),
                       .predecessor_hash = 5};
  for (int i = 0; i < 9; ++i) outcome.members.push_back(MemberOf("w" + std::to_string(i), all));
  outcome.members[1].included = {true};
  outcome.members[7].included = {};
  outcome.segments.assign(layout.segments(), {.payload_bytes = 60, .checksum = 7});
  const v1::RoundHeader header = MakeRoundHeader(outcome);
  EXPECT_EQ(header.segments(0).included(), "\x7f\x01");
  EXPECT_EQ(header.segments(1).included(), "\x7d\x01");
  const auto parsed = ParseRoundHeader(header.SerializeAsString(), layout);
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_TRUE(IsIncluded(*parsed, 1));
  EXPECT_FALSE(IsIncluded(*parsed, 7));
  EXPECT_EQ(ResultBytes(header), 60u * layout.segments());
}

TEST(RecordTest, TokensAreThoseOfIncludedUpdates) {
  RoundOutcome outcome{.members = {MemberOf("a", {true}), MemberOf("b", {})}, .segments = {{}}};
  const v1::RoundHeader header = MakeRoundHeader(outcome);
  EXPECT_EQ(
      IncludedTokens(header, PlanOf(Start(testing::SmallLayout())).slots, testing::SmallConfig()),
      2u * testing::SmallConfig().sequence_length());
}

}  // namespace
}  // namespace distro
