// Signals end a process, so each case runs in a child.
#include "common/base/process/stop_signal.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

class StopSignalDeathTest : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

void Send(int number) { kill(getpid(), number); }

TEST_F(StopSignalDeathTest, CallsHandlerOnFirst) {
  const auto run = [] {
    StopSignal stop;
    absl::Notification called;
    stop.SetHandler([&called] { called.Notify(); });
    Send(SIGTERM);
    called.WaitForNotification();
    stop.SetHandler(nullptr);
    std::exit(stop.signal());
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(SIGTERM), "");
}

TEST_F(StopSignalDeathTest, CallsLateHandlerAtOnce) {
  const auto run = [] {
    StopSignal stop;
    Send(SIGINT);
    while (stop.signal() == 0) std::this_thread::yield();
    stop.SetHandler([] { std::exit(7); });
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(7), "");
}

TEST_F(StopSignalDeathTest, EndsProcessOnSecond) {
  const auto run = [] {
    StopSignal stop;
    stop.SetHandler([] { Send(SIGTERM); });
    Send(SIGINT);
    while (true) pause();
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(128 + SIGTERM), "");
}

TEST_F(StopSignalDeathTest, EndsDuringHandlerOnSecond) {
  const auto run = [] {
    StopSignal stop;
    stop.SetHandler([] {
      Send(SIGINT);
      while (true) pause();
    });
    Send(SIGTERM);
    while (true) pause();
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(128 + SIGINT), "");
}

TEST_F(StopSignalDeathTest, StopsOnHangUpAndCpuLimit) {
  const auto run = [](int number) {
    StopSignal stop;
    absl::Notification called;
    stop.SetHandler([&called] { called.Notify(); });
    Send(number);
    called.WaitForNotification();
    Send(SIGHUP);
    Send(SIGXCPU);
    stop.SetHandler(nullptr);
    std::exit(stop.signal());
  };
  EXPECT_EXIT(run(SIGHUP), ::testing::ExitedWithCode(SIGHUP), "");
  EXPECT_EXIT(run(SIGXCPU), ::testing::ExitedWithCode(SIGXCPU), "");
}

TEST_F(StopSignalDeathTest, KeepsIgnoringHangUp) {
  const auto run = [] {
    std::signal(SIGHUP, SIG_IGN);
    StopSignal stop;
    Send(SIGHUP);
    Send(SIGTERM);
    while (stop.signal() == 0) std::this_thread::yield();
    std::exit(stop.signal());
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(SIGTERM), "");
}

TEST_F(StopSignalDeathTest, TakesIgnoredInterrupt) {
  const auto run = [] {
    std::signal(SIGINT, SIG_IGN);
    StopSignal stop;
    Send(SIGINT);
    while (stop.signal() == 0) std::this_thread::yield();
    std::exit(stop.signal());
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(SIGINT), "");
}

TEST_F(StopSignalDeathTest, ReloadsOnHangUp) {
  const auto run = [] {
    std::atomic<int> calls = 0;
    StopSignal stop([&calls] { ++calls; });
    for (int i = 1; i <= 2; ++i) {
      Send(SIGHUP);
      while (calls < i) std::this_thread::yield();
    }
    std::exit(stop.signal() == 0 ? 7 : 1);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(7), "");
}

TEST_F(StopSignalDeathTest, EndsWithoutASignal) {
  const auto run = [] {
    { StopSignal stop; }
    std::exit(5);
  };
  EXPECT_EXIT(run(), ::testing::ExitedWithCode(5), "");
}

}  // namespace
}  // namespace distro
