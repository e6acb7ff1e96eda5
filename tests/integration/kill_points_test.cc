// The aggregator is killed at every operation on its data folder, one after the other: in the middle of creating the run, of
// writing a record, of making it durable, of what an operator does. Each time it is started again, the two workers go on by
// themselves, and at the end parameters and momentum are bit for bit those of the undisturbed run.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/rpc/channel.h"
#include "common/run/run_config.h"
#include "tests/integration/tiny_aggregator.h"
#include "tests/testing/training.h"
#include "tools/distroctl/replay_log.h"
#include "worker/exchange/grpc_exchange.h"

namespace distro {
namespace {

constexpr uint64_t kRounds = 6;
constexpr int kWorkers = 2;
constexpr int kLanes = 6;
constexpr uint64_t kNever = UINT64_MAX;

const char* const kBinary = DISTRO_KILL_POINT_AGGREGATOR;

// An aggregator as a child process that is killed at an operation, and started again after it, on the same port.
class Aggregator {
 public:
  // Returns when it, or the one that was started after it, listens.
  Aggregator(std::vector<std::string> flags, std::string log_path, uint64_t kill_at)
      : flags_(std::move(flags)), log_path_(std::move(log_path)) {
    supervisor_ = std::thread([this, kill_at] { Supervise(kill_at); });
    absl::MutexLock lock(&mu_);
    mu_.Await(absl::Condition(
        +[](std::string* a) { return !a->empty(); }, &address_));
  }

  ~Aggregator() {
    {
      absl::MutexLock lock(&mu_);
      stopping_ = true;
      kill(child_, SIGTERM);
    }
    supervisor_.join();
  }

  std::string address() const {
    absl::MutexLock lock(&mu_);
    return address_;
  }

  // "killed at 17: fsync PATH"; empty: there were not so many operations.
  std::string killed() const {
    const std::string log = *ReadFile(log_path_);
    const size_t begin = log.find("killed at ");
    return begin == std::string::npos ? "" : log.substr(begin, log.find('\n', begin) - begin);
  }

 private:
  void Supervise(uint64_t kill_at) {
    while (true) {
      const int output = Spawn(kill_at);
      std::string address;
      char byte;
      while (read(output, &byte, 1) == 1 && byte != '\n') address += byte;
      if (byte == '\n' && !address.empty()) SetAddress(address);
      int status = 0;
      waitpid(child_, &status, 0);
      close(output);
      absl::MutexLock lock(&mu_);
      if (stopping_) break;
      const bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
      EXPECT_TRUE(killed && kill_at != kNever) << *ReadFile(log_path_);
      kill_at = kNever;
    }
  }

  // The read end of its standard output.
  int Spawn(uint64_t kill_at) {
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0);
    std::vector<std::string> words = {kBinary, absl::StrCat(kill_at)};
    words.insert(words.end(), flags_.begin(), flags_.end());
    absl::MutexLock lock(&mu_);
    words.push_back(absl::StrCat("--listen=", address_.empty() ? "127.0.0.1:0" : address_));
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, log_path_.c_str(), O_WRONLY | O_CREAT | O_APPEND,
                                     0644);
    EXPECT_EQ(posix_spawn(&child_, kBinary, &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    return ends[0];
  }

  void SetAddress(const std::string& address) {
    absl::MutexLock lock(&mu_);
    address_ = address;
  }

  const std::vector<std::string> flags_;
  const std::string log_path_;
  std::thread supervisor_;
  mutable absl::Mutex mu_;
  pid_t child_ = 0;  // written by the supervisor's thread with the lock held
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::string address_ ABSL_GUARDED_BY(mu_);
};

// What a run leaves behind.
struct Outcome {
  std::string killed;
  std::vector<testing::WorkerResult> workers;
  std::string state;  // state hash after a replay of the log
};

Outcome Train(uint64_t kill_at) {
  const testing::TinyRun tiny;  // the same bytes in a folder of its own each time
  v1::RunConfig config = tiny.Config(kWorkers, kRounds, /*overlap=*/0);
  config.set_min_workers(kWorkers);  // however slow the machine is, no round without both
  EXPECT_TRUE(WriteFileAtomically(tiny.File("run.json"), RunConfigToJson(config)).ok());
  const std::string data_dir = tiny.File("data");
  Outcome outcome;
  {
    Aggregator aggregator({"--data_dir=" + data_dir, "--run=" + tiny.File("run.json"),
                           "--model=" + tiny.checkpoint_dir(), "--http=127.0.0.1:0", "--insecure",
                           "--heartbeat_interval=50ms", "--log_level=warning"},
                          tiny.File("log"), kill_at);
    Log log(LogLevel::kError);
    std::vector<std::unique_ptr<worker::Exchange>> exchanges;
    std::vector<testing::WorkerSetup> setups;
    for (int i = 0; i < kWorkers; ++i) {
      worker::GrpcExchangeOptions options;
      options.channel.aggregator = aggregator.address();
      options.channel.insecure = true;
      options.backoff = {absl::Milliseconds(10), absl::Milliseconds(100)};
      exchanges.push_back(*worker::GrpcExchange::Create(options, &log));
      setups.push_back({.name = absl::StrCat("w", i), .exchange = exchanges.back().get()});
    }
    outcome.workers = testing::TrainTogether(tiny, setups);
    outcome.killed = aggregator.killed();
  }
  const auto replay = tools::ReplayLog({.data_dir = data_dir}, [](absl::string_view) {});
  EXPECT_TRUE(replay.ok()) << replay.status();
  for (const absl::string_view line : absl::StrSplit(replay.ok() ? replay->text : "", '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (words.size() > 1 && words[0] == "state") outcome.state = words[1];
  }
  return outcome;
}

// Runs with a kill at operation 0, 1, 2, ... until one is not killed any more, several at a time: they mostly wait.
std::map<uint64_t, Outcome> TrainWithEachKill() {
  absl::Mutex mu;
  std::map<uint64_t, Outcome> outcomes;
  std::atomic<uint64_t> next{0};
  std::atomic<bool> all{false};
  std::vector<std::thread> lanes;
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes.emplace_back([&] {
      while (!all && !::testing::Test::HasFailure()) {
        const uint64_t n = next++;
        Outcome outcome = Train(n);
        if (outcome.killed.empty()) all = true;
        absl::MutexLock lock(&mu);
        outcomes[n] = std::move(outcome);
      }
    });
  }
  for (std::thread& lane : lanes) lane.join();
  return outcomes;
}

void ExpectSameRun(const Outcome& outcome, const Outcome& undisturbed) {
  SCOPED_TRACE(outcome.killed);
  testing::ExpectSameBits(outcome.workers, undisturbed.workers);
  EXPECT_EQ(outcome.state, undisturbed.state);
  for (const testing::WorkerResult& worker : outcome.workers)
    EXPECT_EQ(worker.summary.rounds_applied, kRounds);
}

TEST(KillPointsTest, EveryOperationMayBeTheLastAndTheRunEndsWithTheSameBits) {
  const Outcome undisturbed = Train(kNever);
  ASSERT_EQ(undisturbed.killed, "");
  ASSERT_EQ(undisturbed.state, ToHex(undisturbed.workers[0].summary.state_hash));
  std::set<std::string> operations;  // the first word after "killed at N: "
  for (const auto& [n, outcome] : TrainWithEachKill()) {
    ExpectSameRun(outcome, undisturbed);
    const std::vector<std::string> words = absl::StrSplit(outcome.killed, ' ');
    if (words.size() > 3) operations.insert(words[3]);
  }
  EXPECT_THAT(operations, ::testing::IsSupersetOf({"create_folder", "create", "write", "fsync",
                                                   "link", "rename", "unlink", "fsync_folder"}));
}

}  // namespace
}  // namespace distro
