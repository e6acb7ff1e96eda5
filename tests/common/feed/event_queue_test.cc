#include "common/feed/event_queue.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

namespace distro {
namespace {

RoundEvent Event(size_t bytes) {
  CommittedRound round;
  round.payloads.push_back(std::make_shared<const std::string>(bytes, 'x'));
  return round;
}

TEST(EventQueueTest, IsFullByEventsOrByBytesButTakesOneOfAnySize) {
  EventQueue queue(2, 100);
  EXPECT_FALSE(queue.Full(Event(1000)));
  EXPECT_TRUE(queue.Push(Event(60)));
  EXPECT_FALSE(queue.Full(Event(40)));
  EXPECT_TRUE(queue.Full(Event(41)));
  EXPECT_TRUE(queue.Push(Event(0)));
  EXPECT_TRUE(queue.Full(Event(0)));
}

TEST(EventQueueTest, PushWaitsForRoom) {
  EventQueue queue(1, 100);
  EXPECT_TRUE(queue.Push(Event(1)));
  std::thread pusher([&] { EXPECT_TRUE(queue.Push(Event(2))); });
  EXPECT_EQ(EventBytes(*queue.Pop()), 1u);
  EXPECT_EQ(EventBytes(*queue.Pop()), 2u);
  pusher.join();
}

TEST(EventQueueTest, GivesWaitingBeforeEnd) {
  EventQueue queue(9, 100);
  EXPECT_FALSE(queue.Ready());
  EXPECT_TRUE(queue.Push(Event(1)));
  queue.Close(absl::OutOfRangeError("done"), /*drop=*/false);
  EXPECT_TRUE(queue.Ready());
  EXPECT_TRUE(queue.Pop().ok());
  EXPECT_EQ(queue.Pop().status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_FALSE(queue.Push(Event(1)));
}

TEST(EventQueueTest, StoppingDropsWhatWaitsAndReleasesWhoPushes) {
  EventQueue queue(1, 100);
  EXPECT_TRUE(queue.Push(Event(1)));
  std::thread pusher([&] { EXPECT_FALSE(queue.Push(Event(2))); });
  queue.Close(absl::CancelledError("stopped"), /*drop=*/true);
  pusher.join();
  EXPECT_EQ(queue.Pop().status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace distro
