#include "common/client/client_state.h"

#include <gtest/gtest.h>

#include <thread>

#include "common/base/epoch.h"
#include "common/base/reason.h"

namespace distro {
namespace {

ClientView Lagging() {
  ClientView view;
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
            "no frame of round 3 comes, and the aggregator is at round 5");
  ClientView view = Lagging();
  EXPECT_EQ(ReasonToReopen(view, now - absl::Seconds(1), patience), "");
  view.next_round = RoundId(5);
  EXPECT_EQ(ReasonToReopen(view, now, patience), "");
  view.subscription_epoch = EpochId(1);
  EXPECT_EQ(ReasonToReopen(view, now, patience),
            "its frames are of epoch 1, and the aggregator has restarted with epoch 2");
  view = Lagging();
  view.delivering = true;
  EXPECT_EQ(ReasonToReopen(view, now, patience), "");
  view = Lagging();
  view.subscribed = false;
  EXPECT_EQ(ReasonToReopen(view, now, patience), "");
}

EpochId EpochAt(absl::Time time) {
  return EpochId((static_cast<uint64_t>(absl::ToUnixSeconds(time)) << kEpochRandomBits) + 5);
}

TEST(CheckEpochTest, FencesOlderEpoch) {
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  EXPECT_TRUE(CheckEpoch(EpochId(5), EpochId(5), now).ok());
  EXPECT_TRUE(CheckEpoch(EpochAt(now), EpochId(5), now).ok());
  EXPECT_EQ(ReasonOf(CheckEpoch(EpochId(4), EpochId(5), now)), "fenced");
  EXPECT_EQ(ReasonOf(CheckEpoch(EpochAt(now), EpochAt(now + absl::Hours(23)), now)), "fenced");
}

// One answer of a liar must not have the true aggregator refused.
TEST(CheckEpochTest, DropsEpochOfFarFuture) {
  const absl::Time now = absl::FromUnixSeconds(1'800'000'000);
  for (const EpochId far : {EpochAt(now + absl::Hours(25)), EpochId(UINT64_MAX)}) {
    EXPECT_TRUE(CheckEpoch(far, EpochAt(now), now).ok());  // of a clock that is wrong, perhaps
    EXPECT_TRUE(CheckEpoch(EpochAt(now), far, now).ok());
    EXPECT_EQ(KeptEpoch(far, now), EpochId());
  }
  EXPECT_EQ(KeptEpoch(EpochAt(now), now), EpochAt(now));
  // Among those of a clock that is years ahead, the higher one is the newer one.
  const EpochId later = EpochAt(now + absl::Hours(90'000)), latest(later.value() + 1);
  EXPECT_TRUE(CheckEpoch(latest, later, now).ok());
  EXPECT_EQ(ReasonOf(CheckEpoch(later, latest, now)), "fenced");
}

TEST(ClientStateTest, ForgetsAnEpochOfTheFarFuture) {
  const EpochId now = EpochAt(absl::Now());
  ClientState state(now);
  state.ObserveEpoch(EpochId(UINT64_MAX));
  EXPECT_EQ(state.view().epoch, EpochId(UINT64_MAX));
  state.ObserveHead(now, RoundId(3));
  EXPECT_EQ(state.view().epoch, now);
}

TEST(ClientStateTest, KeepsFirstEndAndWakesSleepers) {
  ClientState state;
  std::thread waiter([&] { EXPECT_FALSE(state.Sleep(absl::InfiniteDuration())); });
  state.End(absl::AbortedError("first"));
  state.End(absl::CancelledError("second"));
  waiter.join();
  EXPECT_EQ(state.end_status(), absl::AbortedError("first"));
}

TEST(ClientStateTest, WakesOnAggregatorsReturn) {
  ClientState state;
  std::thread waiter(
      [&] { EXPECT_TRUE(state.SleepUnlessNews(absl::InfiniteDuration(), ClientView())); });
  state.ObserveEpoch(EpochId(4));
  state.Update([](ClientView& view) { ++view.returns; });
  waiter.join();
}

TEST(ClientStateTest, WakesOnNewVersion) {
  ClientState state;
  const uint64_t seen = state.view().version;
  state.ObserveEpoch(EpochId(4));
  EXPECT_TRUE(state.AwaitChange(seen, absl::InfiniteDuration()));
  EXPECT_EQ(state.view().epoch, EpochId(4));
  state.ObserveEpoch(EpochId(3));
  EXPECT_EQ(state.view().epoch, EpochId(4));
}

TEST(ClientStateTest, ReopensLaggingSubscription) {
  ClientState state;
  state.Update([](ClientView& view) { view = Lagging(); });
  ClientCall call(&state, [](const ClientView& view) { return view.reopens == 0; });
  EXPECT_EQ(state.ReopenIfSilent(absl::Seconds(110), absl::Seconds(30)), "");
  EXPECT_EQ(state.view().reopens, 0u);
  EXPECT_NE(state.ReopenIfSilent(absl::Seconds(130), absl::Seconds(30)), "");
  EXPECT_EQ(state.view().reopens, 1u);
  EXPECT_TRUE(state.SleepUnlessNews(absl::InfiniteDuration(), Lagging()));
}

}  // namespace
}  // namespace distro
