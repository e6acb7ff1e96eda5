#include "tools/archiver/background_queue.h"

#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace distro::tools {
namespace {

TEST(BackgroundQueueTest, DoesJobsInOrder) {
  std::vector<int> done;
  BackgroundQueue<int> queue(100, [&](const int& job) { done.push_back(job); });
  for (int i = 0; i < 50; ++i) EXPECT_TRUE(queue.Add(i));
  queue.AwaitIdle();
  ASSERT_EQ(done.size(), 50);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(done[i], i);
}

TEST(BackgroundQueueTest, DropsTheOldestThatWaits) {
  std::vector<int> done;
  absl::Notification began, go;
  BackgroundQueue<int> queue(2, [&](const int& job) {
    if (job == 0) {
      began.Notify();
      go.WaitForNotification();
    }
    done.push_back(job);
  });
  queue.Add(0);
  began.WaitForNotification();
  EXPECT_TRUE(queue.Add(1));
  EXPECT_TRUE(queue.Add(2));
  EXPECT_FALSE(queue.Add(3));
  go.Notify();
  queue.AwaitIdle();
  EXPECT_EQ(done, (std::vector<int>{0, 2, 3}));
}

TEST(BackgroundQueueTest, EndsWithoutWhatWaits) {
  std::vector<int> done;
  absl::Notification began, go;
  {
    BackgroundQueue<int> queue(2, [&](const int& job) {
      began.Notify();
      go.WaitForNotification();
      done.push_back(job);
    });
    queue.Add(0);
    began.WaitForNotification();
    go.Notify();
  }
  EXPECT_EQ(done, std::vector<int>{0});
}

}  // namespace
}  // namespace distro::tools
