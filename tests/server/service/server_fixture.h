// A real aggregator on loopback, port 0, with a run on the small layout. The test controls the
// clock, and so deadlines and leases (Advance also wakes the round thread, with a heartbeat of an
// unknown worker).
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/file.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/model/layout/tensor_buffer.h"
#include "common/run/run_config.h"
#include "gtest/gtest.h"
#include "server/aggregator_server.h"
#include "tests/server/round/run_fixture.h"
#include "tests/server/service/test_client.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/server/faulty_disk.h"

namespace distro::testing {

class ServerTest : public ::testing::Test {
 protected:
  ServerTest() {
    limits_.calls_per_second = 1'000'000'000;  // the clock stands still while calls are made
    TensorBuffer parameters(layout_);
    for (int t = 0; t < parameters.tensors(); ++t)
      parameters.tensor(t)[0] = static_cast<float>(t + 1);
    EXPECT_TRUE(WriteCheckpointFolder(folder_.File("model"), "{\"model_type\": \"test\"}", layout_,
                                      parameters)
                    .ok());
  }

  // Starts or restarts on the same data folder; `config` is used only the first time.
  void Start(const v1::RunConfig& config = SmallConfig()) {
    server_ = nullptr;
    ASSERT_TRUE(WriteFileAtomically(folder_.File("run.json"), RunConfigToJson(config)).ok());
    server::AggregatorOptions options = Options();
    options.run = folder_.File("run.json");
    options.model = folder_.File("model");
    auto server = server::AggregatorServer::Start(
        options, &clock_, &log_, [this](absl::Status s) { fatal_ = s; }, &disk_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void StartEmpty() {
    auto server = server::AggregatorServer::Start(
        Options(), &clock_, &log_, [this](absl::Status s) { fatal_ = s; }, &disk_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  std::unique_ptr<TestWorker> NewWorker(const std::string& name, uint64_t incarnation = 7) {
    return std::make_unique<TestWorker>(server_->grpc_address(), name, incarnation);
  }
  // A worker that has joined and is ACTIVE at round 0.
  std::unique_ptr<TestWorker> NewActive(const std::string& name, uint64_t incarnation = 7) {
    auto worker = NewWorker(name, incarnation);
    EXPECT_TRUE(worker->Join().ok());
    worker->Heartbeat(0, 0);
    return worker;
  }
  std::vector<SharedBytes> Payloads(uint64_t round, uint64_t seed) {
    return UpdatePayloads(layout_, RoundId(round), seed);
  }
  void Advance(absl::Duration by) {
    clock_.Advance(by);
    NewWorker("nobody")->Heartbeat(0, 0);
  }

  server::AggregatorOptions Options() {
    server::AggregatorOptions options;
    options.data_dir = folder_.File("data");
    options.listen = listen_;
    options.http = "127.0.0.1:0";
    options.objects = objects_;
    options.mirrors = mirrors_;
    options.insecure = true;
    options.suspect_after = absl::Seconds(500);
    options.lease = absl::Seconds(1000);
    options.limits = limits_;
    options.connections = connections_;
    options.reflection = reflection_;
    return options;
  }

  ScratchFolder folder_;
  Layout layout_ = SmallLayout();
  // Of the next Start, as what follows.
  std::string listen_ = "127.0.0.1:0";
  std::string objects_;  // empty: none are served
  std::vector<std::string> mirrors_;
  server::ServiceLimits limits_;
  server::ConnectionLimits connections_ = server::AggregatorOptions().connections;
  bool reflection_ = false;
  FakeClock clock_;
  FaultyDisk disk_;
  Log log_{LogLevel::kError, Clock::Real(), [](absl::string_view) {}};
  absl::Status fatal_;
  std::unique_ptr<server::AggregatorServer> server_;
};

}  // namespace distro::testing
