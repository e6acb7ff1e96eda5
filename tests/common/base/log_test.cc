#include "common/base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "tests/testing/fake_clock.h"

namespace distro {
namespace {

class LogTest : public ::testing::Test {
 protected:
  Log MakeLog(LogLevel level) {
    return Log(level, &clock_, [this](absl::string_view line) { absl::StrAppend(&text_, line); });
  }
  testing::FakeClock clock_;
  std::string text_;
};

TEST_F(LogTest, WritesOneLineOfKeysAndValues) {
  Log log = MakeLog(LogLevel::kInfo);
  clock_.Advance(absl::Milliseconds(7));
  log.Info("round published", {{"round", 42}, {"workers", "7/8"}, {"wait", 0.5}});
  EXPECT_EQ(text_,
            "2023-11-14T22:13:20.007Z INFO  round published round=42 workers=7/8 wait=0.5\n");
}

TEST_F(LogTest, LevelsBelowAreSilent) {
  Log log = MakeLog(LogLevel::kWarning);
  log.Debug("a");
  log.Info("b");
  EXPECT_EQ(text_, "");
  log.Warning("c");
  log.Error("d");
  EXPECT_EQ(std::vector<std::string>(absl::StrSplit(text_, '\n')).size(), 3u);
}

// A value from the network cannot forge a line or a field.
TEST_F(LogTest, ValuesCannotBreakTheLine) {
  Log log = MakeLog(LogLevel::kInfo);
  log.Info("x", {{"a", "b\nc d=\"e\""}, {"empty", ""}, {"status", absl::NotFoundError("no file")}});
  EXPECT_EQ(text_,
            "2023-11-14T22:13:20.000Z INFO  x a=\"b\\nc d=\\\"e\\\"\" "
            "status=\"NOT_FOUND: no file\"\n");
}

TEST_F(LogTest, KeepsApostrophe) {
  Log log = MakeLog(LogLevel::kInfo);
  log.Info("x", {{"status", "the run's \\"}});
  EXPECT_EQ(text_, "2023-11-14T22:13:20.000Z INFO  x status=\"the run's \\\\\"\n");
}

TEST_F(LogTest, ValuesCannotTurnTheLineOrHideInIt) {
  Log log = MakeLog(LogLevel::kInfo);
  log.Info("x", {{"a", "\u202eb"}, {"c", "\u009b2J"}, {"d", "\xff"}, {"e", "\u2028"}, {"f", "ü"}});
  EXPECT_EQ(text_,
            "2023-11-14T22:13:20.000Z INFO  x a=\"\\u202eb\" c=\"\\u009b2J\" d=\"\\xff\" "
            "e=\"\\u2028\" f=\"ü\"\n");
}

TEST_F(LogTest, CutsLongValue) {
  Log log = MakeLog(LogLevel::kInfo);
  log.Info("x", {{"reason", std::string(900'000, 'a')}, {"next", 1}});
  EXPECT_EQ(text_, absl::StrCat("2023-11-14T22:13:20.000Z INFO  x reason=", std::string(2000, 'a'),
                                "...(900000 bytes) next=1\n"));
}

TEST_F(LogTest, LinesOfThreadsDoNotMix) {
  Log log = MakeLog(LogLevel::kInfo);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 100; ++j) log.Info("event", {{"j", 5}});
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::string expected;
  for (int i = 0; i < 400; ++i) expected += "2023-11-14T22:13:20.000Z INFO  event j=5\n";
  EXPECT_EQ(text_, expected);
}

TEST(ParseLogLevelTest, KnowsFourNames) {
  LogLevel level;
  EXPECT_EQ(ParseLogLevel("warning", &level), absl::OkStatus());
  EXPECT_EQ(level, LogLevel::kWarning);
  EXPECT_EQ(
      ParseLogLevel("WARN", &level),
      absl::InvalidArgumentError("log level 'WARN' is not one of debug, info, warning, error"));
}

// Some containers and sandboxes have no /dev/ptmx, or one that may not be used.
std::string NoTerminal() {
  return absl::StrCat("no pseudo-terminal can be made here: ", strerror(errno));
}

// What a terminal shows of a live line, a log line and the live line again.
TEST(TerminalLogTest, ErasesLiveLine) {
  const int terminal = posix_openpt(O_RDWR | O_NOCTTY);
  if (terminal < 0) GTEST_SKIP() << NoTerminal();
  const bool ready = grantpt(terminal) == 0 && unlockpt(terminal) == 0;
  const int shown = ready ? open(ptsname(terminal), O_RDWR | O_NOCTTY) : -1;
  if (shown < 0) {
    const std::string reason = NoTerminal();
    close(terminal);
    GTEST_SKIP() << reason;
  }
  const int before = dup(STDERR_FILENO);
  dup2(shown, STDERR_FILENO);
  fputs("live", stderr);
  Log(LogLevel::kInfo, Clock::Real()).Info("event");
  dup2(before, STDERR_FILENO);
  std::string text;  // a terminal gives what it has by now
  while (!absl::StrContains(text, "\n")) {
    char some[256];
    const ssize_t count = read(terminal, some, sizeof(some));
    ASSERT_GT(count, 0);
    text.append(some, count);
  }
  EXPECT_TRUE(absl::StartsWith(text, "live\r\x1b[K2")) << text;  // and the year
  for (const int fd : {terminal, shown, before}) close(fd);
}

}  // namespace
}  // namespace distro
