#include "worker/train/open_round.h"

#include "common/net/wire/proto_time.h"
#include "common/run/sample_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"

namespace distro::worker {
namespace {

using ::testing::HasSubstr;

class OpenRoundTest : public ::testing::Test {
 protected:
  OpenRoundTest() {
    config_.set_method(v1::METHOD_SIGNS);
    config_.set_rounds(8);
    config_.set_samples_per_worker(4);
  }
  static OpenedRound Round(uint64_t round, uint64_t first_sample, uint32_t samples = 4) {
    OpenedRound opened{.epoch = EpochId(1), .round = RoundId(round), .open = {}};
    v1::Slot* slot = opened.open.add_slots();
    slot->set_worker("a");
    slot->set_first_sample(first_sample);
    slot->set_samples(samples);
    return opened;
  }
  OpenRound Made() { return OpenRound(&config_, "a", 2); }

  v1::RunConfig config_;
  testing::FakeClock clock_;
};

TEST_F(OpenRoundTest, IsTheRoundAnnouncedLast) {
  OpenRound open = Made();
  EXPECT_FALSE(open.is(RoundId(0)));
  ASSERT_EQ(open.Announce(Round(0, 12), clock_), absl::OkStatus());
  EXPECT_TRUE(open.is(RoundId(0)));
  EXPECT_EQ(open.first_sample(), 12u);
  ASSERT_EQ(open.Announce(Round(1, 16), clock_), absl::OkStatus());
  EXPECT_FALSE(open.is(RoundId(0)));
  EXPECT_TRUE(open.is(RoundId(1)));
  open.Forget();
  EXPECT_FALSE(open.is(RoundId(1)));
}

TEST_F(OpenRoundTest, RefusesSlotsThatTheRunDoesNotHaveAndKeepsTheLastRound) {
  OpenRound open = Made();
  ASSERT_EQ(open.Announce(Round(0, 0), clock_), absl::OkStatus());
  for (const uint32_t samples : {0u, 3u, 5u, 6u}) {
    const absl::Status status = open.Announce(Round(1, 4, samples), clock_);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << samples;
    EXPECT_THAT(std::string(status.message()), HasSubstr("round 1: the aggregator assigned"))
        << samples;
  }
  OpenedRound next = Round(1, 4);
  *next.open.add_next_slots() = Round(2, 8, 3).open.slots(0);
  EXPECT_EQ(open.Announce(next, clock_).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(open.is(RoundId(0)));
}

TEST_F(OpenRoundTest, RefusesAWindowThatTheRunDoesNotHave) {
  OpenRound open = Made();
  OpenedRound round = Round(0, 0);
  *round.open.mutable_window() = ToProto(absl::Seconds(5));
  EXPECT_THAT(std::string(open.Announce(round, clock_).message()),
              HasSubstr("round 0: the aggregator's window is not the run's"));
}

TEST_F(OpenRoundTest, AnnouncedAgainKeepsItsFirstWindow) {
  *config_.mutable_round_window() = ToProto(absl::Seconds(5));
  OpenRound open = Made();
  OpenedRound round = Round(0, 0);
  *round.open.mutable_window() = ToProto(absl::Seconds(5));
  round.arrived = absl::Seconds(100);
  ASSERT_EQ(open.Announce(round, clock_), absl::OkStatus());
  EXPECT_EQ(open.window_ends(), absl::Seconds(105));
  round.arrived = absl::Seconds(103);
  ASSERT_EQ(open.Announce(round, clock_), absl::OkStatus());
  EXPECT_EQ(open.window_ends(), absl::Seconds(105));
  round.round = RoundId(1);
  ASSERT_EQ(open.Announce(round, clock_), absl::OkStatus());
  EXPECT_EQ(open.window_ends(), absl::Seconds(108));
}

TEST_F(OpenRoundTest, ReadsTheNextSlotInAdvanceButForTheLastRound) {
  OpenRound open = Made();
  for (const auto& [round, samples] : {std::pair(0, 8), std::pair(7, 4)}) {
    OpenedRound opened = Round(round, 40);
    *opened.open.add_next_slots() = Round(round + 1, 44).open.slots(0);
    ASSERT_EQ(open.Announce(opened, clock_), absl::OkStatus());
    EXPECT_EQ(SamplesOf(open.Samples()), 4u);
    EXPECT_EQ(SamplesOf(open.SamplesInAdvance()), static_cast<uint64_t>(samples));
  }
}

TEST_F(OpenRoundTest, WithoutASlotTheWorkerHasNoSamples) {
  OpenRound open(&config_, "b", 2);
  ASSERT_EQ(open.Announce(Round(0, 0), clock_), absl::OkStatus());
  EXPECT_EQ(open.slot(), std::nullopt);
  EXPECT_EQ(open.next_slot(), std::nullopt);
}

}  // namespace
}  // namespace distro::worker
