#include "server/limits/byte_budget.h"

#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace distro::server {
namespace {

TEST(ByteBudgetTest, GivesNoMoreThanTheLimit) {
  ByteBudget budget(100);
  const auto share = budget.Take(60);
  ASSERT_TRUE(share.has_value());
  EXPECT_FALSE(budget.Take(41).has_value());
  EXPECT_FALSE(budget.Take(~uint64_t{0}).has_value());
  EXPECT_TRUE(budget.Take(40).has_value());  // given back at once
  EXPECT_EQ(budget.used(), 60u);
}

TEST(ByteBudgetTest, TakesMovedShareBackOnce) {
  ByteBudget budget(100);
  {
    auto share = budget.Take(60);
    const ByteBudget::Share other = *std::move(share);
    EXPECT_EQ(budget.used(), 60u);
  }
  EXPECT_EQ(budget.used(), 0u);
}

TEST(ByteBudgetTest, ThreadsTogetherStayWithinIt) {
  ByteBudget budget(3);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&budget] {
      for (int i = 0; i < 10'000; ++i) {
        const auto share = budget.Take(1);
        EXPECT_LE(budget.used(), 3u);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(budget.used(), 0u);
}

}  // namespace
}  // namespace distro::server
