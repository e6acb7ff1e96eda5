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

using ObjectsTest = testing::BroadcastTest;

TEST_F(ObjectsTest, ComeInsteadOfSegmentFramesToWhoAsked) {
  Broadcast broadcast(1 << 20, RoundId(0));
  WholeRoundWithObjects(&broadcast, 0);
  EXPECT_EQ(Drain(Subscribe(&broadcast, 0, "a", {}, true).get()), "o@2@0@1c");
  EXPECT_EQ(Drain(Subscribe(&broadcast, 0, "b", {}, false).get()), "o201c");
}

TEST_F(ObjectsTest, ComeFromTheLog) {
  Broadcast broadcast(0, RoundId(0));
  for (uint64_t r = 0; r < 2; ++r) WholeRoundWithObjects(&broadcast, r);
  auto subscription = Subscribe(&broadcast, 0, "a", {}, true);
  v1::SubscribeRoundsResponse frame;
  ASSERT_TRUE(frame.ParseFromString(**subscription->Next()));
  EXPECT_EQ(frame.epoch(), 1u);
  // The log's; round_ is the last one.
  const testing::BuiltRound first =
      testing::BuildRound(layout_, RoundId(0), log_file_->HashBefore(RoundId(0)));
  EXPECT_EQ(frame.object().payload_bytes(), first.payloads[0].size());
  EXPECT_EQ(frame.object().sha256(), AsBytes(Sha256(first.payloads[0])));
  EXPECT_EQ(Drain(subscription.get()), "@1@2c@0@1@2c");
}

// The cursor leaves the ring in the middle of a round.
TEST_F(ObjectsTest, ComeOnceEach) {
  Broadcast broadcast(0, RoundId(0));
  OpenRound(&broadcast, 0);
  SendObject(&broadcast, 0, 1);
  SendSegment(&broadcast, 0, 1);
  auto objects = Subscribe(&broadcast, 0, "a", {}, true);
  auto frames = Subscribe(&broadcast, 0, "b", {}, false);
  EXPECT_EQ(Drain(objects.get()), "o@1");
  EXPECT_EQ(Drain(frames.get()), "o1");
  CommitRound(&broadcast, 0);
  EXPECT_EQ(Drain(objects.get()), "@0@2c");
  EXPECT_EQ(Drain(frames.get()), "02c");
}

// A record of a version without objects.
TEST_F(ObjectsTest, AreSegmentFramesWhereTheRecordNamesNone) {
  Broadcast broadcast(0, RoundId(0));
  OpenRound(&broadcast, 0);
  for (auto& segment : *round_.header.mutable_segments()) segment.clear_sha256();
  CommitRound(&broadcast, 0);
  EXPECT_EQ(Drain(Subscribe(&broadcast, 0, "a", {}, true).get()), "012c");
}

}  // namespace
}  // namespace distro::server
