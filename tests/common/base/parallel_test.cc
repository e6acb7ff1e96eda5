#include "common/base/parallel.h"

#include <algorithm>
#include <atomic>
#include <latch>
#include <vector>

#include "gtest/gtest.h"

namespace distro {
namespace {

TEST(ParallelTest, DoesEveryItemOnce) {
  for (int threads : {1, 2, 5}) {
    for (int64_t items : {0, 1, 4, 1000}) {
      std::vector<std::atomic<int>> done(items);
      RunParallel(threads, items, [&](int thread, int64_t item) {
        EXPECT_GE(thread, 0);
        EXPECT_LT(thread, threads);
        ++done[item];
      });
      for (const std::atomic<int>& times : done) EXPECT_EQ(times, 1);
    }
  }
}

// Each item waits for the others: this ends only when three threads work at the same time.
TEST(ParallelTest, WorksOnAllThreadsAtOnce) {
  std::latch here(3);
  std::vector<int> threads(3);
  RunParallel(3, 3, [&](int thread, int64_t item) {
    threads[item] = thread;
    here.arrive_and_wait();
  });
  std::sort(threads.begin(), threads.end());
  EXPECT_EQ(threads, (std::vector<int>{0, 1, 2}));
}

}  // namespace
}  // namespace distro
