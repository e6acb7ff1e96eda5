// The aggregator of a TinyRun in the test's process, with the test's clock and disk, and workers
// for it. It can be restarted on the same port.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/client/channel.h"
#include "common/client/member/grpc_exchange.h"
#include "common/run/run_config.h"
#include "distro/v1/admin.grpc.pb.h"
#include "server/aggregator_server.h"
#include "server/log/disk.h"
#include "tests/testing/loopback.h"
#include "tests/testing/worker/training.h"

namespace distro::testing {

class TinyAggregator {
 public:
  // `tiny`, `clock`, `disk` and `log` are borrowed. Files are written to `folder` of the TinyRun.
  // No round closes without all of the run's workers, even on a slow machine.
  TinyAggregator(const TinyRun& tiny, v1::RunConfig config, const std::string& folder, Log* log,
                 const Clock* clock = Clock::Real(), server::Disk* disk = server::Disk::Real())
      : workers_(static_cast<int>(config.start_workers())),
        tiny_(tiny),
        log_(log),
        clock_(clock),
        disk_(disk) {
    config.set_min_workers(config.start_workers());
    const std::string run = tiny.File(folder + ".json");
    EXPECT_TRUE(WriteFileAtomically(run, RunConfigToJson(config)).ok());
    options_.data_dir = tiny.File(folder);
    options_.run = run;
    options_.model = tiny.checkpoint_dir();
    options_.listen = port_.address();
    options_.http = "127.0.0.1:0";
    options_.insecure = true;
    options_.heartbeat_interval = absl::Milliseconds(50);
    options_.limits.calls_per_second = 1'000'000;  // tests call without pauses
    Start();
  }

  void Start() {
    auto server = server::AggregatorServer::Start(
        options_, clock_, log_, [](absl::Status status) { ADD_FAILURE() << status; }, disk_);
    if (!server.ok()) {
      ADD_FAILURE() << server.status();
      std::abort();  // the workers would wait for it without end
    }
    server_ = *std::move(server);
    admin_ = v1::AdminService::NewStub(*OpenChannel(Channel()));
  }
  void Stop() { server_.reset(); }

  const std::string& data_dir() const { return options_.data_dir; }
  const std::string& http_address() const { return server_->http_address(); }

  v1::GetRunResponse GetRun() const {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    v1::GetRunResponse response;
    const grpc::Status status = admin_->GetRun(&context, v1::GetRunRequest(), &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  // Polls until the run is at that round, or a call fails.
  void AwaitRound(uint64_t round) const {
    while (!::testing::Test::HasFailure() && GetRun().round() < round) {
    }
  }

  // Trains the run's workers to its end, one thread per worker.
  std::vector<WorkerResult> Train() {
    Log quiet(LogLevel::kError);
    std::vector<std::unique_ptr<Exchange>> exchanges;
    std::vector<WorkerSetup> setups;
    for (int i = 0; i < workers_; ++i) {
      GrpcExchangeOptions options;
      options.channel = Channel();
      options.backoff = {absl::Milliseconds(10), absl::Milliseconds(100)};
      exchanges.push_back(*GrpcExchange::Create(options, &quiet, clock_));
      setups.push_back({.name = absl::StrCat("w", i), .exchange = exchanges.back().get()});
    }
    return TrainTogether(tiny_, setups);
  }

 private:
  ChannelOptions Channel() const {
    ChannelOptions channel;
    channel.aggregator = options_.listen;
    channel.insecure = true;
    return channel;
  }

  const HeldPort port_;
  const int workers_;
  const TinyRun& tiny_;
  Log* const log_;
  const Clock* const clock_;
  server::Disk* const disk_;
  server::AggregatorOptions options_;
  std::unique_ptr<server::AggregatorServer> server_;
  std::unique_ptr<v1::AdminService::Stub> admin_;
};

// Expects that every worker was included in every round, and ended with the bits of `expected`.
inline void ExpectSameBits(const std::vector<WorkerResult>& workers,
                           const std::vector<WorkerResult>& expected) {
  ASSERT_EQ(workers.size(), expected.size());
  for (size_t i = 0; i < workers.size(); ++i) {
    ASSERT_TRUE(workers[i].status.ok()) << workers[i].status;
    EXPECT_EQ(workers[i].summary.updates_excluded, 0u);
    EXPECT_EQ(workers[i].summary.next_round, expected[i].summary.next_round);
    EXPECT_EQ(workers[i].summary.state_hash, expected[i].summary.state_hash);
    EXPECT_TRUE(workers[i].momentum_bits == expected[i].momentum_bits) << "momentum of " << i;
  }
}

}  // namespace distro::testing
