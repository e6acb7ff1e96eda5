#include "common/method/signs/rounds.h"

#include "common/base/checksum.h"
#include "common/method/signs/payload.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/small_run.h"
#include "tests/testing/weighted.h"

namespace distro {
namespace {

using testing::SmallConfig;
using testing::UpdatePayload;

std::shared_ptr<const RoundMethod> Method(const v1::RunConfig& config, const Layout& layout) {
  return MakeSignRounds(config, std::make_shared<const Layout>(layout));
}

class SignRoundsTest : public ::testing::Test {
 protected:
  SegmentResult Combine(const v1::RunConfig& config, const std::vector<SharedBytes>& payloads,
                        const std::vector<int>& weights = {}) {
    auto result = Method(config, layout_)
                      ->Combine({RoundId(3), SegmentId(1)}, testing::Weighted(payloads, weights),
                                /*threads=*/1, clock_);
    EXPECT_TRUE(result.ok()) << result.status();
    return *std::move(result);
  }
  SharedBytes Payload(uint64_t seed) {
    return UpdatePayload(layout_, RoundId(3), SegmentId(1), seed);
  }
  Votes Decode(const SegmentResult& result) {
    return *DecodeVotes(*result.payload, {.layout_hash = layout_.manifest().short_hash(),
                                          .round = RoundId(3),
                                          .segment = SegmentId(1),
                                          .blocks = 2,
                                          .k = 4});
  }
  Layout layout_ = testing::SmallLayout();
  testing::FakeClock clock_;
};

TEST_F(SignRoundsTest, ReturnsUpdateOfLoneWorker) {
  const SegmentResult result = Combine(SmallConfig(), {Payload(5)});
  EXPECT_EQ(result.sent_positions, 8u);
  EXPECT_EQ(result.entries, 8u);
  EXPECT_EQ(result.agreement, 8u);
  EXPECT_EQ(result.checksum, Xxh3(*result.payload));
  const SignUpdate update = testing::SomeUpdate(2, 4, 6);
  const Votes votes = Decode(result);
  EXPECT_EQ(votes.positions, update.positions);
}

TEST_F(SignRoundsTest, EqualUpdatesAddUp) {
  const SegmentResult result = Combine(SmallConfig(), {Payload(5), Payload(5), Payload(5)});
  EXPECT_EQ(result.entries, 8u);
  EXPECT_EQ(result.agreement, 24u);
  for (const int16_t value : Decode(result).values) EXPECT_EQ(std::abs(value), 3);
}

TEST_F(SignRoundsTest, UpdatesCountByTheirWeights) {
  const SegmentResult result = Combine(SmallConfig(), {Payload(5), Payload(5)}, {2, 15});
  for (const int16_t value : Decode(result).values) EXPECT_EQ(std::abs(value), 17);
}

TEST_F(SignRoundsTest, IgnoresOrderOfWorkers) {
  EXPECT_EQ(*Combine(SmallConfig(), {Payload(1), Payload(2), Payload(3)}).payload,
            *Combine(SmallConfig(), {Payload(3), Payload(1), Payload(2)}).payload);
}

TEST_F(SignRoundsTest, TopKeepsTheStrongest) {
  v1::RunConfig config = SmallConfig();
  config.set_download(v1::DOWNLOAD_MODE_TOP);
  config.set_kept_votes_per_block(4);
  const SegmentResult result = Combine(config, {Payload(5), Payload(5), Payload(6)});
  EXPECT_GT(result.entries, 8u);
  const Votes votes = Decode(result);
  EXPECT_EQ(votes.values.size(), 8u);
  for (const int16_t value : votes.values) EXPECT_GE(std::abs(value), 1);
}

TEST_F(SignRoundsTest, IgnoresNumberOfThreads) {
  const Layout layout =
      Layout::Create(Manifest::Create({{"matrix", {4096, 2048}}}).value(), 2048).value();
  v1::RunConfig config = SmallConfig();
  for (const int strongest : {0, 3}) {
    if (strongest > 0) config.set_download(v1::DOWNLOAD_MODE_TOP);
    config.set_kept_votes_per_block(strongest);
    const std::vector<SharedBytes> payloads = {UpdatePayload(layout, RoundId(3), SegmentId(0), 1),
                                               UpdatePayload(layout, RoundId(3), SegmentId(0), 2),
                                               UpdatePayload(layout, RoundId(3), SegmentId(0), 3)};
    const auto method = Method(config, layout);
    const auto combine = [&](int threads) {
      return *method->Combine({RoundId(3), SegmentId(0)}, testing::Weighted(payloads), threads,
                              clock_);
    };
    const SegmentResult alone = combine(1);
    for (const int threads : {2, 3, 64}) {
      const SegmentResult result = combine(threads);
      EXPECT_EQ(*result.payload, *alone.payload) << threads;
      EXPECT_EQ(result.entries, alone.entries);
      EXPECT_EQ(result.agreement, alone.agreement);
    }
  }
}

TEST_F(SignRoundsTest, WorkersAreComparedWithEachOther) {
  const SharedBytes one = Payload(5), other = Payload(6);
  const auto pairs =
      Method(SmallConfig(), layout_)->Compare({RoundId(3), SegmentId(1)}, {*one, *other, *one});
  ASSERT_TRUE(pairs.ok()) << pairs.status();
  EXPECT_EQ(pairs->Of(2, 0), (AgreementCounts{.agree = 8, .disagree = 0}));
  EXPECT_EQ(pairs->Of(0, 1), pairs->Of(2, 1));
  EXPECT_LT(pairs->Of(0, 1).agree, 8u);
}

TEST_F(SignRoundsTest, ComparingAPayloadThatDoesNotDecodeIsDamage) {
  std::string damaged = *Payload(5);
  damaged.back() ^= 1;
  EXPECT_TRUE(absl::IsDataLoss(
      Method(SmallConfig(), layout_)->Compare({RoundId(3), SegmentId(1)}, {damaged}).status()));
}

TEST_F(SignRoundsTest, GivesEmptyBlocksOfNobody) {
  const SegmentResult result = Combine(SmallConfig(), {});
  EXPECT_EQ(Decode(result).blocks(), 2);
  EXPECT_TRUE(Decode(result).values.empty());
}

}  // namespace
}  // namespace distro
