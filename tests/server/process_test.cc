// The aggregator as a process: how it exits, and the exit code.
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <filesystem>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "common/base/bytes.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "gmock/gmock.h"
#include "tests/server/service/server_fixture.h"
#include "tests/testing/child_process.h"

namespace distro::testing {
namespace {

using ::testing::HasSubstr;

// One run of distro-aggregator; nothing waits for a time.
class Process : public ChildProcess {
 public:
  explicit Process(const std::vector<std::string>& flags)
      : ChildProcess(DISTRO_AGGREGATOR, flags) {}
  void Signal(int number) { kill(pid(), number); }
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
    const std::string line = process->AwaitLine("listening");
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

TEST_F(ProcessTest, DrainsOnSignal) {
  Process process(Arguments());
  auto worker = WorkerOf(Address(&process));
  process.Signal(SIGTERM);
  EXPECT_THAT(process.AwaitLine("draining"), HasSubstr("open=yes"));
  EXPECT_TRUE(worker->Upload(0, Payloads(0, 1)).status.ok());
  EXPECT_TRUE(rounds_->NextCommit().ok());
  EXPECT_THAT(process.AwaitLine("stopped"), HasSubstr("stopped"));
  EXPECT_EQ(process.ExitCode(), 0);
}

TEST_F(ProcessTest, PlaintextIsAnnouncedAtTheStart) {
  Process process(Arguments());
  EXPECT_THAT(process.AwaitLine("insecure: "), HasSubstr("all traffic is plaintext"));
}

// The limit of this process is what the child may raise its own to.
class FewFiles {
 public:
  explicit FewFiles(rlim_t files) {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit few = {.rlim_cur = files, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &few);
  }
  ~FewFiles() { setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_ = {};
};

TEST_F(ProcessTest, RaisesItsLimitOfOpenFiles) {
  const FewFiles few(200);
  Process process(Arguments());
  EXPECT_NE(Address(&process), "");
}

TEST_F(ProcessTest, DoesNotStartWhereTooFewFilesMayBeOpen) {
  std::vector<std::string> flags = {"-c", "ulimit -n 512 && exec \"$0\" \"$@\"", DISTRO_AGGREGATOR};
  for (std::string& flag : Arguments()) flags.push_back(std::move(flag));
  ChildProcess process("/bin/sh", flags);
  EXPECT_THAT(process.AwaitLine("files open"), HasSubstr("512 files open, and needs 1024"));
  EXPECT_EQ(process.ExitCode(), 2);
}

TEST_F(ProcessTest, EndsOnSecondSignal) {
  Process process(Arguments());
  auto worker = WorkerOf(Address(&process));
  process.Signal(SIGTERM);
  EXPECT_THAT(process.AwaitLine("draining"), HasSubstr("open=yes"));
  process.Signal(SIGTERM);
  EXPECT_EQ(process.ExitCode(), 128 + SIGTERM);
}

// The snapshot has become so large that its start reads it for seconds. One of the two signals is
// taken first.
TEST_F(ProcessTest, EndsOnSecondSignalDuringStart) {
  const std::vector<std::string> arguments = Arguments();
  {
    Process first(arguments);
    ASSERT_NE(Address(&first), "");
    first.Signal(SIGTERM);
    ASSERT_EQ(first.ExitCode(), 0);
  }
  std::filesystem::resize_file(folder_.File("data/snapshots/0.safetensors"), uint64_t{1} << 35);
  Process process(arguments);
  process.AwaitLine("starting");
  process.Signal(SIGTERM);
  process.Signal(SIGINT);
  EXPECT_THAT(process.ExitCode(), ::testing::AnyOf(128 + SIGTERM, 128 + SIGINT));
}

TEST_F(ProcessTest, FlagsThatMustBeMendedEndItWithTwo) {
  std::vector<std::string> arguments = Arguments();
  arguments.push_back("--suspect_after=1s");
  Process process(arguments);
  EXPECT_THAT(process.AwaitLine("--suspect_after"),
              HasSubstr("1s is not above --heartbeat_interval (2s)"));
  EXPECT_EQ(process.ExitCode(), 2);
}

TEST_F(ProcessTest, ExitsWithThreeOnHeldFolder) {
  Process first(Arguments());
  ASSERT_NE(Address(&first), "");
  Process second(Arguments());
  EXPECT_EQ(second.ExitCode(), 3);
  first.Signal(SIGINT);
  EXPECT_EQ(first.ExitCode(), 0);
}

// As a later program would have written it: only the version, and with it the checksum, is another
// one.
TEST_F(ProcessTest, DataOfANewerFormatIsRefusedByNameAndEndsItWithThree) {
  {
    Process process(Arguments());
    ASSERT_NE(Address(&process), "");
    process.Signal(SIGTERM);
    EXPECT_EQ(process.ExitCode(), 0);
  }
  std::string bytes = *ReadFile(folder_.File("data/run.pb"));
  bytes[8] = 9;
  bytes.resize(bytes.size() - sizeof(uint64_t));
  AppendLittleEndian(&bytes, Xxh3(bytes));
  ASSERT_TRUE(WriteFileAtomically(folder_.File("data/run.pb"), bytes).ok());
  Process process(Arguments());
  EXPECT_EQ(process.ExitCode(), 3);
  EXPECT_THAT(
      process.log(),
      HasSubstr("run.pb: format version 9 is newer than this program knows (1): use a newer"));
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
  EXPECT_THAT(process.AwaitLine("run.pb"), HasSubstr("run.pb"));
  EXPECT_EQ(process.ExitCode(), 4);
}

}  // namespace
}  // namespace distro::testing
