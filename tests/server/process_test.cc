// The aggregator as a process: how it ends, with which code.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "tests/server/service/server_fixture.h"

extern char** environ;

namespace distro::testing {
namespace {

using ::testing::HasSubstr;

// One run of distro-aggregator; its log is read line by line, so that nothing waits for a time.
class Process {
 public:
  explicit Process(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), DISTRO_AGGREGATOR);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    EXPECT_EQ(posix_spawn(&pid_, DISTRO_AGGREGATOR, &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    log_ = fdopen(ends[0], "r");
  }
  ~Process() {
    if (pid_ != 0) {
      kill(pid_, SIGKILL);
      (void)Wait();
    }
    fclose(log_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Signal(int number) { kill(pid_, number); }
  // The next line that has `part`; empty: the process ended before.
  std::string Line(absl::string_view part) {
    char line[4096];
    while (fgets(line, sizeof(line), log_) != nullptr) {
      if (absl::StrContains(line, part)) return line;
    }
    return "";
  }
  // waitpid's status.
  int Wait() {
    int status = 0;
    EXPECT_EQ(waitpid(std::exchange(pid_, 0), &status, 0) > 0, true);
    return status;
  }
  int ExitCode() {
    const int status = Wait();
    EXPECT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status);
  }

 private:
  pid_t pid_ = 0;
  FILE* log_ = nullptr;
};

class ProcessTest : public ServerTest {
 protected:
  std::vector<std::string> Arguments() {
    EXPECT_TRUE(WriteFileAtomically(folder_.File("run.json"), RunConfigToJson(SmallConfig())).ok());
    return {"--data_dir", folder_.File("data"),  "--run",     folder_.File("run.json"),
            "--model",    folder_.File("model"), "--listen",  "127.0.0.1:0",
            "--http",     "127.0.0.1:0",         "--insecure"};
  }
  // Its gRPC address, once it listens.
  static std::string Address(Process* process) {
    const std::string line = process->Line("listening");
    const std::vector<std::string> fields = absl::StrSplit(line, absl::ByAnyChar(" \n"));
    for (const std::string& field : fields) {
      if (absl::StartsWith(field, "grpc=")) return field.substr(5);
    }
    return "";
  }
  // A worker whose round is open.
  std::unique_ptr<TestWorker> WorkerOf(const std::string& address) {
    auto worker = std::make_unique<TestWorker>(address, "a", 7);
    EXPECT_TRUE(worker->Join().ok());
    rounds_ = worker->Subscribe(&layout_);
    worker->Heartbeat(0, 0);
    EXPECT_TRUE(rounds_->NextOpen().ok());
    return worker;
  }

  std::unique_ptr<TestSubscription> rounds_;
};

TEST_F(ProcessTest, ASignalLetsTheOpenRoundEndAndExitsWithZero) {
  Process process(Arguments());
  auto worker = WorkerOf(Address(&process));
  process.Signal(SIGTERM);
  EXPECT_THAT(process.Line("draining"), HasSubstr("open=yes"));
  EXPECT_TRUE(worker->Upload(0, Payloads(0, 1)).status.ok());
  EXPECT_TRUE(rounds_->NextCommit().ok());
  EXPECT_THAT(process.Line("stopped"), HasSubstr("stopped"));
  EXPECT_EQ(process.ExitCode(), 0);
}

TEST_F(ProcessTest, ASecondSignalEndsAtOnce) {
  Process process(Arguments());
  auto worker = WorkerOf(Address(&process));
  process.Signal(SIGTERM);
  EXPECT_THAT(process.Line("draining"), HasSubstr("open=yes"));
  process.Signal(SIGTERM);
  const int status = process.Wait();
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

TEST_F(ProcessTest, FlagsThatMustBeMendedEndItWithTwo) {
  std::vector<std::string> arguments = Arguments();
  arguments.push_back("--suspect_after=1s");
  Process process(arguments);
  EXPECT_THAT(process.Line("--suspect_after"),
              HasSubstr("1s is not above --heartbeat_interval (2s)"));
  EXPECT_EQ(process.ExitCode(), 2);
}

TEST_F(ProcessTest, AFolderThatIsHeldEndsTheSecondWithThree) {
  Process first(Arguments());
  ASSERT_NE(Address(&first), "");
  Process second(Arguments());
  EXPECT_EQ(second.ExitCode(), 3);
  first.Signal(SIGINT);
  EXPECT_EQ(first.ExitCode(), 0);
}

TEST_F(ProcessTest, DamagedDataEndsItWithFour) {
  {
    Process process(Arguments());
    ASSERT_NE(Address(&process), "");
    process.Signal(SIGTERM);
    EXPECT_EQ(process.ExitCode(), 0);
  }
  std::string bytes = *ReadFile(folder_.File("data/run.pb"));
  bytes[bytes.size() / 2] ^= 1;
  ASSERT_TRUE(WriteFileAtomically(folder_.File("data/run.pb"), bytes).ok());
  Process process(Arguments());
  EXPECT_THAT(process.Line("run.pb"), HasSubstr("run.pb"));
  EXPECT_EQ(process.ExitCode(), 4);
}

}  // namespace
}  // namespace distro::testing
