// A feed without a session; tests/common/client/member has those of members.
#include "common/client/follow/round_feed.h"

#include <gtest/gtest.h>

#include <optional>
#include <variant>

#include "common/base/checksum.h"
#include "common/base/reason.h"
#include "tests/common/client/follow/follow_fixture.h"
#include "tests/testing/round_builder.h"

namespace distro {
namespace {

class RoundFeedTest : public FollowTest {
 protected:
  RoundFeedTest() {
    uint64_t hash = 7;
    for (uint64_t round = 0; round < 3; ++round) {
      rounds_.push_back(testing::BuildRound(layout_, RoundId(round), hash));
      hash = Xxh3(rounds_.back().header_bytes());
    }
  }

  // The next subscriptions play `streams`.
  void Begin(const std::vector<StreamScript>& streams) {
    aggregator_.Change(
        [&](AggregatorState& state) { state.streams.assign(streams.begin(), streams.end()); });
    feed_.emplace(follower_, connection_.get(), &layout_,
                  RoundFeed::Start{.run_id = "run-1", .next_round = {}, .rounds = RoundId(3)},
                  &queue_);
  }
  std::vector<v1::SubscribeRoundsResponse> Frames(uint64_t round) const {
    return testing::Frames(rounds_[round], EpochId(1));
  }
  void ExpectCommit(uint64_t round) {
    const absl::StatusOr<RoundEvent> event = queue_.Pop();
    ASSERT_TRUE(event.ok()) << event.status();
    ASSERT_TRUE(std::holds_alternative<CommittedRound>(*event));
    EXPECT_EQ(std::get<CommittedRound>(*event).round(), RoundId(round));
  }

  const Layout layout_ = testing::SmallLayout();
  std::vector<testing::BuiltRound> rounds_;
  EventQueue queue_{1, UINT64_MAX};
  std::optional<RoundFeed> feed_;
};

TEST_F(RoundFeedTest, ReconnectsWhenFenced) {
  Begin({{{}, true, fenced_}, {Frames(0), false, {}}});
  ExpectCommit(0);
  ExpectAnotherConnection("SubscribeRounds");
  EXPECT_EQ(meter_.stats(absl::ZeroDuration()).reconnects, 1u);
}

TEST_F(RoundFeedTest, HandsOnWhatIsCommittedAndEndsWithTheRun) {
  v1::SubscribeRoundsResponse open;
  open.set_epoch(1);
  *open.mutable_open()->mutable_step() = rounds_[0].header.step();
  std::vector<v1::SubscribeRoundsResponse> frames = {open};
  for (uint64_t round = 0; round < 3; ++round)
    for (auto& frame : Frames(round)) frames.push_back(std::move(frame));
  Begin({{frames, false, {}}});
  for (uint64_t round = 0; round < 3; ++round) ExpectCommit(round);
  EXPECT_EQ(queue_.Pop().status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_FALSE(state_.ended());
  EXPECT_FALSE(aggregator_.state().subscriptions[0].has_worker());
}

TEST_F(RoundFeedTest, WithoutASessionARefusalEndsTheFeedAndNotTheClient) {
  Begin({{Frames(0), true, Refusal(absl::StatusCode::kFailedPrecondition, "no_session")}});
  ExpectCommit(0);
  EXPECT_EQ(ReasonOf(queue_.Pop().status()), "no_session");
  EXPECT_FALSE(state_.ended());
}

TEST_F(RoundFeedTest, RefusesDivergedHistory) {
  const testing::BuiltRound other = testing::BuildRound(layout_, RoundId(1), 8);
  std::vector<v1::SubscribeRoundsResponse> frames = Frames(0);
  for (auto& frame : testing::Frames(other, EpochId(1))) frames.push_back(std::move(frame));
  Begin({{frames, false, {}}});
  ExpectCommit(0);
  EXPECT_EQ(ReasonOf(queue_.Pop().status()), "diverged");
}

TEST_F(RoundFeedTest, EndsWithTheClient) {
  Begin({{{}, false, {}}});
  state_.End(absl::CancelledError("stopped"));
  EXPECT_EQ(queue_.Pop().status(), absl::CancelledError("stopped"));
}

// One that waits for frames, and one that waits for who takes its rounds.
TEST_F(RoundFeedTest, ClosesAtOnceWithoutEndingClient) {
  Begin({{Frames(0), false, {}}});
  ExpectCommit(0);
  feed_.reset();
  EXPECT_FALSE(state_.ended());
  queue_.Close(absl::OkStatus(), true);

  EventQueue full(1, UINT64_MAX);
  std::vector<v1::SubscribeRoundsResponse> frames = Frames(0);
  for (auto& frame : Frames(1)) frames.push_back(std::move(frame));
  aggregator_.Change([&](AggregatorState& state) { state.streams = {{frames, false, {}}}; });
  feed_.emplace(follower_, connection_.get(), &layout_,
                RoundFeed::Start{.run_id = "run-1", .next_round = {}, .rounds = RoundId(3)}, &full);
  while (!state_.view().delivering) state_.AwaitChange(state_.view().version, absl::Seconds(1));
  feed_.reset();
  EXPECT_FALSE(state_.ended());
}

}  // namespace
}  // namespace distro
