#include "tests/integration/killed_run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "common/base/file.h"
#include "common/client/member/grpc_exchange.h"
#include "common/run/run_config.h"
#include "tests/integration/killed_aggregator.h"
#include "tests/integration/tiny_aggregator.h"
#include "tools/distroctl/replay_log.h"

namespace distro::testing {
namespace {

constexpr int kWorkers = 2;
constexpr int kLanes = 6;

std::vector<WorkerResult> Train(const TinyRun& tiny, const ChannelOptions& channel) {
  Log log(LogLevel::kError);
  std::vector<std::unique_ptr<Exchange>> exchanges;
  std::vector<WorkerSetup> setups;
  for (int i = 0; i < kWorkers; ++i) {
    GrpcExchangeOptions options;
    options.channel = channel;
    options.backoff = {absl::Milliseconds(10), absl::Milliseconds(100)};
    exchanges.push_back(*GrpcExchange::Create(options, &log));
    setups.push_back({.name = absl::StrCat("w", i), .exchange = exchanges.back().get()});
  }
  return TrainTogether(tiny, setups);
}

// A run of the method that DISTRO_TEST_METHOD names, else of signs.
v1::RunConfig OfTest(const TinyRun& tiny) {
  const char* const method = std::getenv("DISTRO_TEST_METHOD");
  return method != nullptr && absl::string_view(method) == "deltas"
             ? tiny.DeltaConfig(kWorkers, kKilledRunRounds, /*local_steps=*/2)
             : tiny.Config(kWorkers, kKilledRunRounds, /*overlap=*/0);
}

std::string ReplayedState(const std::string& data_dir) {
  const auto replay = tools::ReplayLog({.data_dir = data_dir}, [](absl::string_view) {});
  EXPECT_TRUE(replay.ok()) << replay.status();
  return replay.ok() ? replay->json["state_hash"].get<std::string>() : "";
}

}  // namespace

KilledRun TrainWhileKilled(const std::vector<std::string>& points, const Meanwhile& meanwhile) {
  const TinyRun tiny;  // the same bytes in a folder of its own each time
  v1::RunConfig config = OfTest(tiny);
  config.set_min_workers(kWorkers);  // however slow the machine is, no round without both
  EXPECT_TRUE(WriteFileAtomically(tiny.File("run.json"), RunConfigToJson(config)).ok());
  const std::string data_dir = tiny.File("data");
  KilledAggregator aggregator({"--data_dir=" + data_dir, "--run=" + tiny.File("run.json"),
                               "--model=" + tiny.checkpoint_dir(), "--insecure",
                               "--heartbeat_interval=50ms", "--log_level=error"},
                              points);
  std::thread other;
  if (meanwhile) other = std::thread([&] { meanwhile(aggregator.channel(), data_dir); });
  KilledRun run;
  run.workers = Train(tiny, aggregator.channel());
  if (meanwhile) other.join();
  aggregator.Stop();
  run.killed = aggregator.killed();
  run.log = aggregator.log();
  run.state = ReplayedState(data_dir);
  return run;
}

void ExpectSameRun(const KilledRun& run, const KilledRun& undisturbed) {
  SCOPED_TRACE(absl::StrJoin(run.killed, "\n"));
  ExpectSameBits(run.workers, undisturbed.workers);
  EXPECT_EQ(run.state, undisturbed.state);
  for (const WorkerResult& worker : run.workers)
    EXPECT_EQ(worker.summary.rounds_applied, kKilledRunRounds);
}

void ForEachInLanes(const std::function<bool(size_t)>& work) {
  std::atomic<size_t> next{0};
  std::atomic<bool> all{false};
  std::vector<std::thread> lanes;
  for (int lane = 0; lane < kLanes; ++lane) {
    lanes.emplace_back([&] {
      while (!all && !::testing::Test::HasFailure()) {
        if (!work(next++)) all = true;
      }
    });
  }
  for (std::thread& lane : lanes) lane.join();
}

}  // namespace distro::testing
