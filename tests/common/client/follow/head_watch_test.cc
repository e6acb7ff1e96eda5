#include "common/client/follow/head_watch.h"

#include <gtest/gtest.h>

#include "common/base/reason.h"
#include "tests/common/client/follow/follow_fixture.h"

namespace distro {
namespace {

class HeadWatchTest : public FollowTest {
 protected:
  HeadWatchTest() { Change(3); }

  void Change(uint64_t epoch) {
    aggregator_.Change([&](AggregatorState& state) {
      state.run.Clear();
      state.run.set_run_id("run-1");
      state.run.set_epoch(epoch);
      v1::SnapshotInfo* snapshot = state.run.add_snapshots();
      snapshot->set_sha256(std::string(32, 's'));
      snapshot->set_size_bytes(1);
    });
  }
};

TEST_F(HeadWatchTest, ReconnectsWhenFenced) {
  aggregator_.Change([this](AggregatorState& state) { state.run_failures = {fenced_}; });
  EXPECT_TRUE(AwaitRun(follower_, connection_.get(), &contact_).ok());
  ExpectAnotherConnection("GetRun");
}

TEST_F(HeadWatchTest, ReconnectsOnLowerEpoch) {
  state_.ObserveEpoch(EpochId(4));
  EXPECT_EQ(ReasonOf(GetRun(follower_, connection_.get()).status()), "fenced");
  Change(4);
  EXPECT_TRUE(GetRun(follower_, connection_.get()).ok());
  ExpectAnotherConnection("GetRun");
}

TEST_F(HeadWatchTest, StopsOnRefusalAndEnd) {
  aggregator_.Change([](AggregatorState& state) {
    state.run_failures = {Refusal(absl::StatusCode::kPermissionDenied, "role")};
  });
  EXPECT_EQ(ReasonOf(AwaitRun(follower_, connection_.get(), &contact_).status()), "role");
  state_.End(absl::CancelledError("stopped"));
  EXPECT_EQ(AwaitRun(follower_, connection_.get(), &contact_).status(),
            absl::CancelledError("stopped"));
}

TEST_F(HeadWatchTest, StopsWithoutAnswerInTime) {
  const ChannelOptions nowhere = {"127.0.0.1:1", true};
  FirstContact contact(nowhere, absl::Milliseconds(1), &log_, Clock::Real());
  const auto connection = *Connection::Open(nowhere);
  EXPECT_EQ(ReasonOf(AwaitRun(follower_, connection.get(), &contact).status()), "unreachable");
}

TEST_F(HeadWatchTest, IsToldAgainAndAgainAndGoesOnAfterAFailure) {
  aggregator_.Change([this](AggregatorState& state) { state.run_failures = {fenced_}; });
  absl::Mutex mu;
  int answers = 0;
  HeadWatch watch(follower_, connection_.get(), absl::Milliseconds(1),
                  [&](const v1::GetRunResponse& run) {
                    EXPECT_EQ(run.epoch(), 3u);
                    absl::MutexLock lock(&mu);
                    ++answers;
                  });
  const auto enough = [&] { return answers >= 3; };
  absl::MutexLock lock(&mu);
  EXPECT_TRUE(mu.AwaitWithTimeout(absl::Condition(&enough), absl::Seconds(20)));
}

}  // namespace
}  // namespace distro
