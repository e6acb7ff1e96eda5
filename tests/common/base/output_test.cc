#include "common/base/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace distro {
namespace {

class OutputLinesTest : public ::testing::Test {
 protected:
  OutputLinesTest() {
    EXPECT_EQ(pipe2(pipe_, O_CLOEXEC), 0);
    fcntl(pipe_[0], F_SETFL, O_NONBLOCK);
    fcntl(pipe_[1], F_SETPIPE_SZ, 4 * 4096);
  }
  ~OutputLinesTest() override {
    close(pipe_[0]);
    close(pipe_[1]);
  }
  std::string ReadAll() {
    std::string text(1 << 16, '\0');
    const ssize_t got = read(pipe_[0], text.data(), text.size());
    text.resize(got > 0 ? got : 0);
    return text;
  }

  int pipe_[2] = {-1, -1};
};

TEST_F(OutputLinesTest, WritesLinesAsTheyAre) {
  OutputLines lines(pipe_[1]);
  lines.Write("one\n");
  lines.Write("two\n");
  EXPECT_EQ(ReadAll(), "one\ntwo\n");
}

TEST_F(OutputLinesTest, DropsLinesThatNobodyReads) {
  OutputLines lines(pipe_[1]);
  for (int i = 0; i < 100; ++i) lines.Write(std::string(999, 'x') + "\n");
  EXPECT_FALSE(HasRoom(pipe_[1]));
  EXPECT_TRUE(absl::StartsWith(ReadAll(), "xxx"));
  lines.Write("again\n");
  const std::vector<std::string> said = absl::StrSplit(ReadAll(), '\n');
  ASSERT_EQ(said.size(), 3u);
  EXPECT_TRUE(absl::StartsWith(said[0], "(lines left out that nobody read: 8")) << said[0];
  EXPECT_EQ(said[1], "again");
}

TEST_F(OutputLinesTest, SurvivesEndOfReader) {
  std::signal(SIGPIPE, SIG_IGN);
  close(pipe_[0]);
  OutputLines lines(pipe_[1]);
  for (int i = 0; i < 100; ++i) lines.Write("one\n");
}

}  // namespace
}  // namespace distro
