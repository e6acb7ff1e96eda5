#include "common/client/member/session.h"

#include <gtest/gtest.h>

#include <thread>

#include "common/base/reason.h"

namespace distro {
namespace {

SessionView Lagging() {
  SessionView view;
  view.epoch = EpochId(2);
  view.subscription_epoch = EpochId(2);
  view.head = RoundId(5);
  view.next_round = RoundId(3);
  view.subscribed = true;
  view.last_frame = absl::Seconds(100);
  return view;
}

TEST(ReasonToReopenTest, IsALagInSilenceOnly) {
  const absl::Duration patience = absl::Seconds(30), now = absl::Seconds(130);
  EXPECT_EQ(ReasonToReopen(Lagging(), now, patience),
            "round 3 is awaited, the aggregator is at round 5");
  SessionView view = Lagging();
  EXPECT_EQ(ReasonToReopen(view, now - absl::Seconds(1), patience), "");
  view.next_round = RoundId(5);
  EXPECT_EQ(ReasonToReopen(view, now, patience), "");
  view.subscription_epoch = EpochId(1);
  EXPECT_EQ(ReasonToReopen(view, now, patience), "frames are of epoch 1, the aggregator's is 2");
  view = Lagging();
  view.delivering = true;
  EXPECT_EQ(ReasonToReopen(view, now, patience), "");
  view = Lagging();
  view.subscribed = false;
  EXPECT_EQ(ReasonToReopen(view, now, patience), "");
}

TEST(SessionTest, TheFirstEndStaysAndWakesWhoWaits) {
  Session session{v1::JoinRequest(), v1::JoinResponse()};
  std::thread waiter([&] { EXPECT_FALSE(session.Sleep(absl::InfiniteDuration())); });
  session.End(absl::AbortedError("first"));
  session.End(absl::CancelledError("second"));
  waiter.join();
  EXPECT_EQ(session.end_status(), absl::AbortedError("first"));
}

TEST(SessionTest, TheAggregatorsReturnEndsASleep) {
  Session session{v1::JoinRequest(), v1::JoinResponse()};
  std::thread waiter(
      [&] { EXPECT_TRUE(session.SleepUnlessBack(absl::InfiniteDuration(), /*returns=*/0)); });
  session.ObserveEpoch(EpochId(4));
  session.Update([](SessionView& view) { ++view.returns; });
  waiter.join();
}

TEST(SessionTest, ARejoinNamesTheRunAndTheHighestEpoch) {
  v1::JoinResponse response;
  response.set_run_id("run-1");
  response.set_epoch(3);
  Session session{v1::JoinRequest(), response};
  session.ObserveEpoch(EpochId(8));
  EXPECT_EQ(session.RejoinRequest().run_id(), "run-1");
  EXPECT_EQ(session.RejoinRequest().epoch(), 8u);
}

TEST(SessionTest, AChangeWakesWhoSawTheVersionBefore) {
  Session session{v1::JoinRequest(), v1::JoinResponse()};
  const uint64_t seen = session.view().version;
  session.ObserveEpoch(EpochId(4));
  EXPECT_TRUE(session.AwaitChange(seen, absl::InfiniteDuration()));
  EXPECT_EQ(session.view().epoch, EpochId(4));
  session.ObserveEpoch(EpochId(3));
  EXPECT_EQ(session.view().epoch, EpochId(4));
}

TEST(SessionTest, ARejoinMustFindTheSameRunAndLayout) {
  v1::JoinResponse response;
  response.set_run_id("run-1");
  response.set_manifest_hash("m");
  response.mutable_config()->set_segment_blocks(8);
  const Session session(v1::JoinRequest(), response);
  EXPECT_TRUE(session.CheckSameRun(response).ok());
  EXPECT_EQ(session.run_id(), "run-1");
  for (int field = 0; field < 3; ++field) {
    v1::JoinResponse other = response;
    if (field == 0) other.set_run_id("run-2");
    if (field == 1) other.set_manifest_hash("n");
    if (field == 2) other.mutable_config()->set_segment_blocks(9);
    EXPECT_EQ(ReasonOf(session.CheckSameRun(other)), "other_run") << field;
  }
}

}  // namespace
}  // namespace distro
