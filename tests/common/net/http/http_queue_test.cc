#include "common/net/http/http_limits.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

TEST(HttpQueueTest, IsFirstInFirstOutForOnePeer) {
  HttpQueue queue(3);
  for (const uint64_t id : {1, 2, 3}) EXPECT_EQ(queue.Push(id, "a"), std::nullopt);
  for (const uint64_t id : {1, 2, 3}) EXPECT_EQ(queue.Pop(), id);
  EXPECT_EQ(queue.Pop(), std::nullopt);
}

TEST(HttpQueueTest, PeersTakeTurns) {
  HttpQueue queue(9);
  for (const uint64_t id : {1, 2, 3}) queue.Push(id, "a");
  queue.Push(4, "b");
  queue.Push(5, "c");
  for (const uint64_t id : {1, 4, 5, 2, 3}) EXPECT_EQ(queue.Pop(), id);
}

// However often the others come back.
TEST(HttpQueueTest, ServesPeerWhileOthersAsk) {
  HttpQueue queue(9);
  uint64_t next = 100;
  queue.Push(++next, "a");
  queue.Push(++next, "b");
  queue.Push(1, "c");
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_NE(queue.Pop(), 1);
    queue.Push(++next, turn == 0 ? "a" : "b");
  }
  EXPECT_EQ(queue.Pop(), 1);
}

TEST(HttpQueueTest, DropsNewestOfBusiestPeer) {
  HttpQueue queue(3);
  for (const uint64_t id : {1, 2, 3}) queue.Push(id, "a");
  EXPECT_EQ(queue.Push(4, "b"), 3);
  for (const uint64_t id : {1, 4, 2}) EXPECT_EQ(queue.Pop(), id);
  EXPECT_EQ(queue.Pop(), std::nullopt);
}

TEST(HttpQueueTest, RefusesNewcomerAmongEquals) {
  HttpQueue queue(2);
  queue.Push(1, "a");
  queue.Push(2, "b");
  EXPECT_EQ(queue.Push(3, "c"), 3);
  EXPECT_EQ(queue.Push(4, "a"), 4);
  for (const uint64_t id : {1, 2}) EXPECT_EQ(queue.Pop(), id);
}

TEST(HttpQueueTest, RemovesLeaver) {
  HttpQueue queue(2);
  queue.Push(1, "a");
  queue.Push(2, "a");
  queue.Remove(1);
  queue.Remove(7);
  EXPECT_EQ(queue.Push(3, "a"), std::nullopt);
  for (const uint64_t id : {2, 3}) EXPECT_EQ(queue.Pop(), id);
}

}  // namespace
}  // namespace distro
