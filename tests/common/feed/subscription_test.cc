// Records that are damaged behind the back of the log, as subscriptions meet them.
#include "common/feed/subscription.h"

#include <filesystem>

#include "common/base/reason.h"
#include "gmock/gmock.h"
#include "tests/common/feed/broadcast_fixture.h"

namespace distro::server {
namespace {

using absl::StatusCode;
using DamagedRecordsTest = testing::BroadcastTest;

TEST_F(DamagedRecordsTest, IsNotServedToItsEnd) {
  Broadcast broadcast(0, RoundId(0));
  for (uint64_t r = 0; r < 3; ++r) WholeRound(&broadcast, r);
  Flip(1, 2);
  auto a = Subscribe(&broadcast, 0);
  EXPECT_EQ(Drain(a.get()), "012c01!");
  auto b = Subscribe(&broadcast, 1);
  EXPECT_EQ(Drain(b.get()), "01!");
  const absl::Status status = Subscribe(&broadcast, 1)->Next().status();
  EXPECT_TRUE(status.ok()) << "what comes before the damage is good";
  Flip(1, 0);
  const absl::Status damaged = Subscribe(&broadcast, 1)->Next().status();
  EXPECT_EQ(damaged.code(), StatusCode::kDataLoss);
  EXPECT_EQ(ReasonOf(damaged), "damaged");
  EXPECT_FALSE(absl::StrContains(damaged.message(), folder_.path())) << damaged;
}

TEST_F(DamagedRecordsTest, DamageIsToldOnceUntilTheRecordWasReadWhole) {
  Broadcast broadcast(0, RoundId(0));
  for (uint64_t r = 0; r < 3; ++r) WholeRound(&broadcast, r);
  Flip(1, 2);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(Drain(Subscribe(&broadcast, 0).get()), "012c01!");
  EXPECT_EQ(Lines("record damaged"), 1);
  EXPECT_EQ(Lines(RecordName(RoundId(1)) + ": the checksum of segment 2 does not match"), 1);
  EXPECT_EQ(Damaged(), 1u);
  EXPECT_EQ(damaged_.Count([](RoundId round) { return round >= RoundId(2); }), 0u);
  EXPECT_EQ(damaged_.FirstFrom(RoundId(0)), RoundId(1));
  Flip(1, 2);  // restored, under the aggregator that runs
  EXPECT_EQ(Drain(Subscribe(&broadcast, 0).get()), "012c012c012c");
  EXPECT_EQ(Lines("record whole again"), 1);
  EXPECT_EQ(Damaged(), 0u);
}

TEST_F(DamagedRecordsTest, IncludesMissing) {
  Broadcast broadcast(0, RoundId(0));
  for (uint64_t r = 0; r < 2; ++r) WholeRound(&broadcast, r);
  std::filesystem::remove(folder_.File("rounds/" + RecordName(RoundId(1))));
  auto a = Subscribe(&broadcast, 1);
  EXPECT_EQ(ReasonOf(a->Next().status()), "damaged");
  EXPECT_EQ(Lines("is missing"), 1);
}

// Another segment came from memory: the record as a whole was not read.
TEST_F(DamagedRecordsTest, OnlyWhoReadAllOfARecordCallsItWhole) {
  Broadcast broadcast(0, RoundId(0));
  auto a = Subscribe(&broadcast, 0);
  OpenRound(&broadcast, 0);
  SendSegment(&broadcast, 0, 1);
  EXPECT_EQ(Drain(a.get()), "o1");
  SendSegment(&broadcast, 0, 0);
  SendSegment(&broadcast, 0, 2);
  CommitRound(&broadcast, 0);
  Flip(0, 1);
  EXPECT_EQ(Drain(Subscribe(&broadcast, 0, "b").get()), "0!");
  EXPECT_EQ(Drain(a.get()), "02c");
  EXPECT_EQ(Damaged(), 1u);
}

}  // namespace
}  // namespace distro::server
