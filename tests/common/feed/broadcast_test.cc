// The ring and a subscription's way between ring and log.
#include "common/feed/broadcast.h"

#include "absl/synchronization/notification.h"
#include "common/net/wire/frames.h"
#include "gmock/gmock.h"
#include "tests/common/feed/broadcast_fixture.h"

namespace distro {
namespace {

using absl::StatusCode;
using BroadcastTest = testing::BroadcastTest;

TEST_F(BroadcastTest, SendsFramesAsTheyCome) {
  Broadcast broadcast(1 << 20, RoundId(0));
  auto a = Subscribe(&broadcast, 0);
  EXPECT_EQ(Drain(a.get()), "");
  OpenRound(&broadcast, 0);
  SendSegment(&broadcast, 0, 2);
  EXPECT_EQ(Drain(a.get()), "o2");
  SendSegment(&broadcast, 0, 0);
  SendSegment(&broadcast, 0, 1);
  CommitRound(&broadcast, 0);
  EXPECT_EQ(Drain(a.get()), "01c");
  WholeRound(&broadcast, 1);
  EXPECT_EQ(Drain(a.get()), "o201c");
}

TEST_F(BroadcastTest, SharesBytes) {
  Broadcast broadcast(1 << 20, RoundId(0));
  auto a = Subscribe(&broadcast, 0, "a");
  auto b = Subscribe(&broadcast, 0, "b");
  OpenRound(&broadcast, 0);
  EXPECT_EQ(a->Next()->get(), b->Next()->get());
}

TEST_F(BroadcastTest, ReadsLogBeyondRing) {
  Broadcast broadcast(0, RoundId(0));
  for (uint64_t r = 0; r < 3; ++r) WholeRound(&broadcast, r);
  EXPECT_EQ(broadcast.bytes(), 0u);
  OpenRound(&broadcast, 3);
  auto a = Subscribe(&broadcast, 1);
  EXPECT_EQ(Drain(a.get()), "012c012co");
}

TEST_F(BroadcastTest, ContinuesRoundInLog) {
  Broadcast broadcast(0, RoundId(0));
  auto a = Subscribe(&broadcast, 0);
  OpenRound(&broadcast, 0);
  SendSegment(&broadcast, 0, 1);
  EXPECT_EQ(Drain(a.get()), "o1");
  SendSegment(&broadcast, 0, 0);
  SendSegment(&broadcast, 0, 2);
  CommitRound(&broadcast, 0);
  EXPECT_EQ(Drain(a.get()), "02c");
}

TEST_F(BroadcastTest, MemoryIsBoundedByTheRingAndTheOpenRound) {
  Broadcast broadcast(3000, RoundId(0));
  for (uint64_t r = 0; r < 20; ++r) {
    WholeRound(&broadcast, r);
    EXPECT_LE(broadcast.bytes(), 3000u);
  }
}

TEST_F(BroadcastTest, EndsAfterLastFrame) {
  Broadcast broadcast(0, RoundId(0));
  WholeRound(&broadcast, 0);
  broadcast.End(absl::OkStatus());
  auto a = Subscribe(&broadcast, 0);
  EXPECT_EQ(Drain(a.get()), "012c!");
  EXPECT_EQ(a->Next().status().code(), StatusCode::kOutOfRange);
}

TEST_F(BroadcastTest, DrainsAfterLastFrame) {
  Broadcast broadcast(1 << 20, RoundId(0));
  auto a = Subscribe(&broadcast, 0);
  WholeRound(&broadcast, 0);
  broadcast.End(absl::AbortedError("draining"));
  EXPECT_EQ(Drain(a.get()), "o201c!");
  EXPECT_EQ(a->Next().status().code(), StatusCode::kAborted);
}

TEST_F(BroadcastTest, DrainsWithoutReadersOfLog) {
  Broadcast broadcast(0, RoundId(0));
  WholeRound(&broadcast, 0);
  auto a = Subscribe(&broadcast, 0);
  broadcast.End(absl::AbortedError("draining"));
  EXPECT_EQ(Drain(a.get()), "!");
}

// Earlier frames are still valid for a renewed subscription, and need not be sent twice.
TEST_F(BroadcastTest, EndsSubscriptionsOnReopen) {
  Broadcast broadcast(1 << 20, RoundId(0));
  auto a = Subscribe(&broadcast, 0);
  WholeRound(&broadcast, 0);
  OpenRound(&broadcast, 1);
  broadcast.Reopen(MakeOpenFrame(EpochId(1), RoundId(1), {}, {}), absl::AbortedError("again"));
  EXPECT_EQ(Drain(a.get()), "o201c!");
  EXPECT_EQ(a->Next().status().code(), StatusCode::kAborted);
  EXPECT_EQ(Drain(Subscribe(&broadcast, 1).get()), "o");
}

TEST_F(BroadcastTest, EndsOlderSubscriptionOfWorker) {
  Broadcast broadcast(1 << 20, RoundId(0));
  auto first = Subscribe(&broadcast, 0, "a");
  auto other = Subscribe(&broadcast, 0, "b");
  auto second = Subscribe(&broadcast, 0, "a");
  EXPECT_EQ(first->Next().status().code(), StatusCode::kUnavailable);
  EXPECT_TRUE(second->Next().ok());
  EXPECT_TRUE(other->Next().ok());
  broadcast.Close("b", absl::AbortedError("replaced"));
  EXPECT_EQ(other->Next().status().code(), StatusCode::kAborted);
}

// The names of listeners, in the order in which they were woken.
class Wakes {
 public:
  void Add(const std::string& name) {
    absl::MutexLock lock(&mu_);
    names_.push_back(name);
  }
  std::vector<std::string> Await(size_t count) {
    absl::MutexLock lock(&mu_);
    const auto reached = [&] { return names_.size() >= count; };
    EXPECT_TRUE(mu_.AwaitWithTimeout(absl::Condition(&reached), absl::Seconds(20)));
    return names_;
  }

 private:
  absl::Mutex mu_;
  std::vector<std::string> names_ ABSL_GUARDED_BY(mu_);
};

class RecordingListener : public Listener {
 public:
  // With `hold` every Wake waits for it.
  RecordingListener(std::string name, Wakes* wakes, absl::Notification* hold = nullptr)
      : name_(std::move(name)), wakes_(wakes), hold_(hold) {}
  void Wake() override {
    wakes_->Add(name_);
    if (hold_ != nullptr) hold_->WaitForNotification();
  }

 private:
  const std::string name_;
  Wakes* const wakes_;
  absl::Notification* const hold_;
};

TEST_F(BroadcastTest, ListenersAreWokenWhenThereIsNews) {
  Wakes wakes;
  const auto listener = std::make_shared<RecordingListener>("a", &wakes);
  Broadcast broadcast(1 << 20, RoundId(0));
  auto a = Subscribe(&broadcast, 0, "a", listener);
  OpenRound(&broadcast, 0);
  wakes.Await(1);
  broadcast.Close("a", absl::AbortedError("replaced"));
  wakes.Await(2);
  broadcast.End(absl::OkStatus());
  wakes.Await(3);
}

// Followers are many and untrusted: no round waits for one, and workers are woken before followers.
TEST_F(BroadcastTest, WakesWorkersBeforeFollowers) {
  Wakes wakes;
  absl::Notification go_on;
  const auto slow = std::make_shared<RecordingListener>("slow", &wakes, &go_on);
  const auto follower = std::make_shared<RecordingListener>("follower", &wakes);
  const auto worker = std::make_shared<RecordingListener>("worker", &wakes);
  Broadcast broadcast(1 << 20, RoundId(0));
  auto a = Subscribe(&broadcast, 0, "", slow);
  auto b = Subscribe(&broadcast, 0, "", follower);
  OpenRound(&broadcast, 0);
  wakes.Await(1);
  auto c = Subscribe(&broadcast, 0, "a", worker);
  SendSegment(&broadcast, 0, 0);
  go_on.Notify();
  EXPECT_THAT(wakes.Await(4), ::testing::ElementsAre("slow", "worker", "follower", "slow"));
}

TEST_F(BroadcastTest, ReportsLargestLag) {
  Broadcast broadcast(1 << 20, RoundId(0));
  EXPECT_EQ(broadcast.MaxLag(), 0u);
  auto a = Subscribe(&broadcast, 0, "a");
  for (uint64_t r = 0; r < 3; ++r) WholeRound(&broadcast, r);
  EXPECT_EQ(broadcast.MaxLag(), 3u);
  Drain(a.get());
  EXPECT_EQ(broadcast.MaxLag(), 0u);
  a.reset();
  EXPECT_EQ(broadcast.MaxLag(), 0u);
}

TEST(MakeSegmentFramesTest, CutsAtTheLimitAndLosesNothing) {
  std::string payload(2 * kFrameBytes + 5, '\0');
  for (size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<char>(i * 7);
  const auto frames = MakeSegmentFrames(EpochId(1), RoundId(2), SegmentId(4), payload);
  ASSERT_EQ(frames.size(), 3);
  std::string joined;
  for (const RoundFrame& frame : frames) {
    v1::SubscribeRoundsResponse message;
    ASSERT_TRUE(message.ParseFromString(*frame.bytes));
    EXPECT_EQ(message.segment().segment(), 4);
    EXPECT_EQ(message.segment().offset(), joined.size());
    EXPECT_EQ(message.segment().payload_bytes(), payload.size());
    EXPECT_LE(message.segment().data().size(), kFrameBytes);
    joined += message.segment().data();
    EXPECT_EQ(frame.segment_end, joined.size());
  }
  EXPECT_EQ(joined, payload);
}

}  // namespace
}  // namespace distro
