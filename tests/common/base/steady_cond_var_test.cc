#include "common/base/steady_cond_var.h"

#include <memory>
#include <thread>

#include "gtest/gtest.h"

namespace distro {
namespace {

class SteadyCondVarTest : public ::testing::Test {
 protected:
  // A thread that counts to `turns` in turn with this one.
  void CountTo(int turns, int parity) {
    absl::MutexLock lock(&mu_);
    while (count_ < turns) {
      const auto own_turn = [&] { return count_ % 2 == parity || count_ >= turns; };
      ASSERT_TRUE(changed_.WaitFor(&mu_, absl::InfiniteDuration(), own_turn));
      if (count_ < turns) ++count_;
      changed_.SignalAll();
    }
  }

  absl::Mutex mu_;
  SteadyCondVar changed_;
  int count_ = 0;
};

TEST_F(SteadyCondVarTest, LosesNoSignal) {
  std::thread other([this] { CountTo(20'000, 1); });
  CountTo(20'000, 0);
  other.join();
  EXPECT_EQ(count_, 20'000);
}

TEST_F(SteadyCondVarTest, AsksAtLeastOnce) {
  absl::MutexLock lock(&mu_);
  int asked = 0;
  EXPECT_TRUE(changed_.WaitFor(&mu_, -absl::InfiniteDuration(), [&] { return ++asked == 1; }));
  EXPECT_EQ(asked, 1);
}

TEST_F(SteadyCondVarTest, AsksAgainAtTheEnd) {
  absl::MutexLock lock(&mu_);
  int asked = 0;
  EXPECT_TRUE(changed_.WaitFor(&mu_, absl::Milliseconds(1), [&] { return ++asked == 2; }));
  EXPECT_FALSE(changed_.WaitFor(&mu_, absl::ZeroDuration(), [] { return false; }));
  EXPECT_FALSE(changed_.WaitFor(&mu_, -absl::InfiniteDuration(), [] { return false; }));
}

TEST(SteadyNotificationTest, MayBeDestroyedOnceItWasSeen) {
  for (int i = 0; i < 1000; ++i) {
    auto done = std::make_unique<SteadyNotification>();
    EXPECT_FALSE(done->WaitFor(absl::ZeroDuration()));
    std::thread other([told = done.get()] { told->Notify(); });
    EXPECT_TRUE(done->WaitFor(absl::InfiniteDuration()));
    EXPECT_TRUE(done->WaitFor(absl::ZeroDuration()));
    done.reset();
    other.join();
  }
}

}  // namespace
}  // namespace distro
