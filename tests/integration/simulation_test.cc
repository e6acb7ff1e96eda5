// A run over gRPC and the same run in one process, when everyone is included: not a bit differs,
// neither in the parameters nor in any worker's momentum. Both have the same rounds, but only one
// has a network, threads of its own and a clock. The log that the aggregator leaves gives the same
// parameters again.
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "bench/local/local_exchange.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/client/member/grpc_exchange.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/run/run_config.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/replica/replica.h"
#include "server/aggregator_server.h"
#include "tests/testing/worker/training.h"
#include "tools/distroctl/replay_log.h"

namespace distro {
namespace {

using testing::TinyRun;
using testing::TrainTogether;
using testing::WorkerResult;
using testing::WorkerSetup;

constexpr uint64_t kRounds = 12;

using MakeExchange = std::function<std::unique_ptr<Exchange>()>;

// Trains workers w0, w1, ... to the end of the run; w0 writes its model to `checkpoint_dir` unless
// that is empty.
std::vector<WorkerResult> Train(const TinyRun& tiny, int workers, const MakeExchange& make,
                                const std::string& checkpoint_dir) {
  std::vector<std::unique_ptr<Exchange>> exchanges;
  std::vector<WorkerSetup> setups;
  for (int i = 0; i < workers; ++i) {
    exchanges.push_back(make());
    setups.push_back({.name = absl::StrCat("w", i),
                      .exchange = exchanges.back().get(),
                      .checkpoint_dir = i == 0 ? checkpoint_dir : ""});
  }
  return TrainTogether(tiny, setups);
}

std::vector<WorkerResult> Simulate(const TinyRun& tiny, const v1::RunConfig& config) {
  const auto aggregator = *server::LocalAggregator::Create(
      *server::MakeLocalRun(config, tiny.checkpoint_dir(), tiny.File("initial.safetensors")));
  return Train(
      tiny, static_cast<int>(config.start_workers()),
      [&] { return std::make_unique<server::LocalExchange>(aggregator.get()); }, "");
}

class Aggregator {
 public:
  Aggregator(const TinyRun& tiny, const v1::RunConfig& config) : data_dir_(tiny.File("data")) {
    EXPECT_TRUE(WriteFileAtomically(tiny.File("run.json"), RunConfigToJson(config)).ok());
    server::AggregatorOptions options;
    options.data_dir = data_dir_;
    options.run = tiny.File("run.json");
    options.model = tiny.checkpoint_dir();
    options.listen = "127.0.0.1:0";
    options.http = "127.0.0.1:0";
    options.insecure = true;
    auto server = server::AggregatorServer::Start(
        options, Clock::Real(), &log_, [](absl::Status status) { ADD_FAILURE() << status; });
    EXPECT_TRUE(server.ok()) << server.status();
    if (server.ok()) server_ = *std::move(server);
  }

  std::unique_ptr<Exchange> Connect() {
    GrpcExchangeOptions options;
    options.channel = {.aggregator = server_->grpc_address(), .insecure = true};
    return *GrpcExchange::Create(options, &log_);
  }

  const std::string& data_dir() const { return data_dir_; }

 private:
  const std::string data_dir_;
  Log log_{LogLevel::kError};
  std::unique_ptr<server::AggregatorServer> server_;
};

uint64_t HashOfCheckpoint(const std::string& dir) {
  const absl::StatusOr<CheckpointFolder> checkpoint = OpenCheckpointFolder(dir);
  EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
  const Layout layout = *Layout::Create(checkpoint->manifest(), kDefaultSegmentBlocks);
  TensorBuffer parameters(layout);
  EXPECT_TRUE(checkpoint->ReadInto(layout, &parameters).ok());
  return StateHash(layout, parameters, MakeReferenceBackend().get());
}

void ExpectTheSameBits(const std::vector<WorkerResult>& a, const std::vector<WorkerResult>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_TRUE(a[i].status.ok()) << a[i].status;
    ASSERT_TRUE(b[i].status.ok()) << b[i].status;
    EXPECT_EQ(a[i].summary.rounds_applied, kRounds);
    EXPECT_EQ(a[i].summary.updates_excluded, 0u);
    EXPECT_EQ(ToHex(*a[i].summary.state_hash), ToHex(*a[0].summary.state_hash));
    EXPECT_EQ(ToHex(*a[i].summary.state_hash), ToHex(*b[i].summary.state_hash));
    EXPECT_EQ(a[i].summary.training_loss, b[i].summary.training_loss);
    EXPECT_TRUE(a[i].momentum_bits == b[i].momentum_bits) << "momentum of worker " << i;
  }
}

// How a round's work is paced: with signs overlap 0 or 1, with deltas the local steps.
struct Pace {
  v1::Method method;
  uint32_t number;
};
// pace, workers, download, K
using Case = std::tuple<Pace, int, v1::DownloadMode, int>;

class SimulationTest : public ::testing::TestWithParam<Case> {
 protected:
  v1::RunConfig Config() const {
    const auto [pace, workers, download, kept] = GetParam();
    v1::RunConfig config = pace.method == v1::METHOD_DELTAS
                               ? tiny_.DeltaConfig(workers, kRounds, pace.number)
                               : tiny_.Config(workers, kRounds, pace.number);
    config.set_kept_per_block(kept);
    config.set_max_workers(workers);
    config.set_download(download);
    if (download == v1::DOWNLOAD_MODE_TOP) config.set_kept_votes_per_block(3);
    return *CompleteRunConfig(config);
  }
  const TinyRun tiny_;
};

TEST_P(SimulationTest, GivesBitsOfRunOverGrpc) {
  const v1::RunConfig config = Config();
  Aggregator aggregator(tiny_, config);
  const std::vector<WorkerResult> real = Train(
      tiny_, static_cast<int>(config.start_workers()), [&] { return aggregator.Connect(); },
      tiny_.File("trained"));
  ExpectTheSameBits(real, Simulate(tiny_, config));
  ASSERT_TRUE(real[0].status.ok());

  EXPECT_EQ(HashOfCheckpoint(tiny_.File("trained")), real[0].summary.state_hash);
  // The aggregator still holds the folder.
  const absl::StatusOr<tools::Report> replay =
      tools::ReplayLog({.data_dir = aggregator.data_dir()}, [](absl::string_view) {});
  ASSERT_TRUE(replay.ok()) << replay.status();
  EXPECT_TRUE(
      absl::StrContains(replay->text, absl::StrCat("state   ", ToHex(*real[0].summary.state_hash))))
      << replay->text;
  const std::string reported = absl::StrCat("members ", kRounds * config.start_workers(), " state");
  EXPECT_TRUE(absl::StrContains(replay->text, reported)) << replay->text;
}

std::string NameOf(const ::testing::TestParamInfo<Case>& info) {
  const auto [pace, workers, download, kept] = info.param;
  return absl::StrCat(pace.method == v1::METHOD_DELTAS ? "DeltasSteps" : "SignsOverlap",
                      pace.number, "Workers", workers,
                      download == v1::DOWNLOAD_MODE_TOP ? "Top" : "Lossless", "K", kept);
}

INSTANTIATE_TEST_SUITE_P(
    All, SimulationTest,
    ::testing::Combine(::testing::Values(Pace{v1::METHOD_SIGNS, 0}, Pace{v1::METHOD_SIGNS, 1},
                                         Pace{v1::METHOD_DELTAS, 1}, Pace{v1::METHOD_DELTAS, 3}),
                       ::testing::Values(1, 3),
                       ::testing::Values(v1::DOWNLOAD_MODE_LOSSLESS, v1::DOWNLOAD_MODE_TOP),
                       ::testing::Values(4, 12)),
    NameOf);
INSTANTIATE_TEST_SUITE_P(EveryPosition, SimulationTest,
                         ::testing::Values(Case(Pace{v1::METHOD_DELTAS, 2}, 3,
                                                v1::DOWNLOAD_MODE_LOSSLESS, 4096)),
                         NameOf);

}  // namespace
}  // namespace distro
