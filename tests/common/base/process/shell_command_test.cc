#include "common/base/process/shell_command.h"

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/notification.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;
using ::testing::UnorderedElementsAre;

class ShellCommandTest : public ::testing::Test {
 protected:
  absl::Status Run(const std::string& text, const ShellCommand::Variables& variables = {}) {
    ShellCommand command(text);
    return command.Run(variables, [this](absl::string_view line) { lines_.emplace_back(line); });
  }
  static void ExpectAborted(const absl::Status& status, const std::string& message) {
    EXPECT_EQ(status.code(), StatusCode::kAborted) << status;
    EXPECT_EQ(status.message(), message);
  }

  std::vector<std::string> lines_;
};

TEST_F(ShellCommandTest, GetsVariablesAndGivesTheLinesOfBothOutputs) {
  EXPECT_EQ(Run("echo one $A; echo two >&2; printf 'no end'", {{"A", "a 'b'"}}), absl::OkStatus());
  EXPECT_THAT(lines_, UnorderedElementsAre("one a 'b'", "two", "no end"));
}

TEST_F(ShellCommandTest, OverridesVariable) {
  EXPECT_EQ(Run("echo $HOME; env | grep -c ^HOME=", {{"HOME", "there"}}), absl::OkStatus());
  EXPECT_THAT(lines_, ElementsAre("there", "1"));
}

TEST_F(ShellCommandTest, ReadsNothingFromAnybody) {
  EXPECT_EQ(Run("cat"), absl::OkStatus());
  EXPECT_THAT(lines_, SizeIs(0));
}

TEST_F(ShellCommandTest, NamesFailureAndLastLine) {
  ExpectAborted(Run("exit 3"), "ended with 3");
  ExpectAborted(Run("echo first; echo no room; exit 4"), "ended with 4: no room");
  ExpectAborted(Run("kill -9 $$"), "was killed by signal 9");
  EXPECT_EQ(Run("/no/such/program").code(), StatusCode::kAborted);
  EXPECT_THAT(lines_.back(), HasSubstr("/no/such/program"));
}

TEST_F(ShellCommandTest, ManyAndLongLinesAreCutAndNotLost) {
  EXPECT_EQ(Run("head -c 300000 /dev/zero | tr '\\0' x; echo; seq 20000"), absl::OkStatus());
  ASSERT_THAT(lines_, SizeIs(20001));
  EXPECT_EQ(lines_[0], std::string(1000, 'x'));
  EXPECT_EQ(lines_.back(), "20000");
}

// A background process that keeps the output open is not waited for.
TEST_F(ShellCommandTest, LeavesBackgroundProcess) {
  EXPECT_EQ(Run("sleep 1000 & echo $!"), absl::OkStatus());
  ASSERT_THAT(lines_, SizeIs(1));
  EXPECT_EQ(Run(absl::StrCat("kill ", lines_[0])), absl::OkStatus());
}

// Stops a command after its first line; returns how it ended.
absl::Status EndOfStopped(ShellCommand* command) {
  absl::Notification begun;
  absl::Status end;
  std::thread thread([&] { end = command->Run({}, [&](absl::string_view) { begun.Notify(); }); });
  begun.WaitForNotification();
  command->Stop();
  thread.join();
  return end;
}

TEST_F(ShellCommandTest, StopsProcessGroup) {
  ShellCommand command("sleep 1000 & echo begun; wait");
  EXPECT_EQ(EndOfStopped(&command).code(), StatusCode::kCancelled);
  EXPECT_EQ(command.Run({}, [](absl::string_view) {}).code(), StatusCode::kCancelled) << "for ever";
}

TEST_F(ShellCommandTest, KillsStubbornCommand) {
  ShellCommand command("trap '' TERM; echo begun; while :; do sleep 1000; done",
                       absl::Milliseconds(1));
  EXPECT_EQ(EndOfStopped(&command).code(), StatusCode::kCancelled);
}

TEST(ShellFilterTest, GivesTheStandardOutputOfWhatIsOnItsInput) {
  EXPECT_EQ(*ShellCommand("tr a-z A-Z").Filter("two\nlines, no end"), "TWO\nLINES, NO END");
  EXPECT_EQ(*ShellCommand("cat").Filter(""), "");
  EXPECT_EQ(*ShellCommand("echo heard >&2; cat; cat").Filter("once"), "once");
}

TEST(ShellFilterTest, TakesMoreThanAPipeHolds) {
  const std::string bytes(1 << 20, '\0');
  EXPECT_EQ(*ShellCommand("cat").Filter(bytes), bytes);
  EXPECT_EQ(*ShellCommand("echo nothing read").Filter(bytes), "nothing read\n");
}

TEST(ShellFilterTest, NamesFailureAndLastError) {
  const auto filtered = ShellCommand("echo half; echo no such token >&2; exit 2").Filter("x");
  EXPECT_EQ(filtered.status(), absl::AbortedError("ended with 2: no such token"));
}

TEST(ShellFilterTest, RefusesEndlessOutput) {
  const std::string command =
      absl::StrCat("head -c ", ShellCommand::kMaxFilteredBytes + 1, " /dev/zero");
  EXPECT_EQ(ShellCommand(command).Filter("").status().code(), StatusCode::kResourceExhausted);
}

TEST(ShellFilterTest, StopsEarly) {
  ShellCommand command("sleep 1000");
  command.Stop();
  EXPECT_EQ(command.Filter("").status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace distro
