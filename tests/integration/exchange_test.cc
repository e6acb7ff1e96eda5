// GrpcExchanges with scripted updates against the real aggregator in one process: every replica
// ends with the same parameters, through a late joiner and an aggregator that restarts in the
// middle.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/base/file.h"
#include "common/client/channel.h"
#include "common/client/member/grpc_exchange.h"
#include "common/model/checkpoint/hf_folder.h"
#include "common/model/checkpoint/snapshot.h"
#include "common/run/run_config.h"
#include "distro/v1/admin.grpc.pb.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/replica/replica.h"
#include "server/aggregator_server.h"
#include "tests/testing/loopback.h"
#include "tests/testing/round_builder.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/worker/scripted_update.h"

namespace distro::worker {
namespace {

constexpr uint64_t kRounds = 30;

// The final state of a worker.
struct Outcome {
  absl::Status status;
  uint64_t log_hash = 0;
  uint64_t state_hash = 0;
  uint64_t included = 0;  // rounds in which all its segments were
  TransferStats stats;
};

// A worker without training: it follows, applies, and uploads what ScriptedUpdate says in each
// round that it has samples in. `pause` runs before the round's update is sent.
class ScriptedWorker {
 public:
  using Pause = std::function<void(uint64_t round)>;

  ScriptedWorker(std::string name, const std::string& address, std::string folder, Log* log,
                 Pause pause)
      : name_(std::move(name)), folder_(std::move(folder)), pause_(std::move(pause)) {
    GrpcExchangeOptions options;
    options.channel = {address, true};
    options.backoff = {absl::Milliseconds(10), absl::Milliseconds(200)};
    exchange_ = *GrpcExchange::Create(options, log);
  }

  Outcome Run() {
    Outcome outcome;
    outcome.status = Follow();
    outcome.stats = exchange_->stats();
    outcome.included = included_;
    if (replica_ != nullptr) {
      outcome.log_hash = replica_->log_hash();
      outcome.state_hash = replica_->StateHash();
    }
    exchange_->Leave("done");
    return outcome;
  }

 private:
  absl::Status Follow() {
    v1::JoinRequest request;
    request.mutable_worker()->set_name(name_);
    request.mutable_worker()->set_incarnation(std::hash<std::string>()(name_) | 1);
    request.set_data_fingerprint("the same text");
    request.set_version("0.1.0");
    absl::StatusOr<v1::JoinResponse> run = exchange_->Join(request);
    if (!run.ok()) return run.status();
    const std::string path = folder_ + "/" + name_;
    if (absl::Status status = exchange_->DownloadSnapshot(run->snapshot(), path); !status.ok())
      return status;
    layout_ = std::make_unique<Layout>(
        *Layout::Create(*SnapshotManifest(path), static_cast<int>(run->config().segment_blocks())));
    TensorBuffer parameters(*layout_);
    if (absl::Status status = ReadSnapshot(path, *layout_, &parameters); !status.ok())
      return status;
    replica_ =
        std::make_unique<Replica>(layout_.get(), backend_.get(), std::move(parameters),
                                  RoundId(run->snapshot().round()), run->snapshot().log_hash());
    EXPECT_EQ(replica_->StateHash(), run->snapshot().state_hash());
    absl::Status status =
        exchange_->Follow(layout_.get(), replica_->next_round(), replica_->log_hash());
    exchange_->Report(replica_->next_round(), replica_->log_hash());
    while (status.ok()) status = Step();
    return status;
  }

  absl::Status Step() {
    absl::StatusOr<RoundEvent> event = exchange_->Next();
    if (!event.ok()) return event.status();
    if (const auto* committed = std::get_if<CommittedRound>(&*event)) return Apply(*committed);
    const auto& opened = std::get<OpenedRound>(*event);
    for (const v1::Slot& slot : opened.open.slots()) {
      if (slot.worker() != name_) continue;
      pause_(opened.round.value());
      const int k = static_cast<int>(opened.open.step().kept_per_block());
      RoundUpdate update = testing::ScriptedUpdate(*layout_, opened.round, name_, k, false);
      update.state_hash = replica_->StateHash();
      exchange_->Upload(std::move(update));
    }
    return absl::OkStatus();
  }

  absl::Status Apply(const CommittedRound& round) {
    if (absl::Status status = replica_->Apply(round); !status.ok()) return status;
    const int member = round.MemberIndex(name_);
    bool everywhere = member >= 0;
    for (uint32_t s = 0; s < layout_->segments() && everywhere; ++s) {
      everywhere = round.Included(member, SegmentId(s));
    }
    included_ += everywhere;
    exchange_->Report(replica_->next_round(), replica_->log_hash());
    return absl::OkStatus();
  }

  const std::string name_;
  const std::string folder_;
  const Pause pause_;
  const std::unique_ptr<Backend> backend_ = MakeCpuBackend();
  std::unique_ptr<GrpcExchange> exchange_;
  std::unique_ptr<Layout> layout_;
  std::unique_ptr<Replica> replica_;
  uint64_t included_ = 0;
};

void NoPause(uint64_t) {}

class ExchangeTest : public ::testing::Test {
 protected:
  ExchangeTest() {
    const Layout layout = testing::SmallLayout();
    TensorBuffer parameters(layout);
    for (int i = 0; i < parameters.tensors(); ++i) {
      float value = 0;
      for (float& p : parameters.tensor(i)) p = (value += 0.125f);
    }
    EXPECT_TRUE(WriteCheckpointFolder(folder_.File("model"), "{}", layout, parameters).ok());
    options_.data_dir = folder_.File("data");
    options_.run = folder_.File("run.json");
    options_.model = folder_.File("model");
    options_.listen = port_.address();
    options_.http = "127.0.0.1:0";
    options_.insecure = true;
    options_.heartbeat_interval = absl::Milliseconds(50);
    options_.suspect_after = absl::Seconds(10);
    options_.lease = absl::Seconds(20);
  }

  void StartAggregator(int start_workers) {
    const std::string run = absl::StrCat(
        R"({"name": "exchange", "rounds": )", kRounds,
        R"(, "sequence_length": 8, "method": "signs", "workers": "python", "samples_per_worker": 2, "segment_blocks": 2, "probation_rounds": 0,
                                         "start_workers": )",
        start_workers, "}");
    ASSERT_TRUE(WriteFileAtomically(options_.run, run).ok());
    StartAggregator();
  }

  void StartAggregator() {
    auto server = server::AggregatorServer::Start(
        options_, Clock::Real(), &log_, [](absl::Status status) { ADD_FAILURE() << status; });
    ASSERT_TRUE(server.ok()) << server.status();
    aggregator_ = *std::move(server);
  }

  // Starts a worker on its own thread.
  void StartWorker(const std::string& name, ScriptedWorker::Pause pause = NoPause) {
    const size_t index = outcomes_.size();
    outcomes_.push_back(std::make_unique<Outcome>());
    threads_.emplace_back([this, name, index, pause, outcome = outcomes_[index].get()] {
      *outcome = ScriptedWorker(name, options_.listen, folder_.path(), &log_, pause).Run();
    });
  }

  // Asks the aggregator until the worker has applied everything: it gets samples with the next
  // record.
  void AwaitSynced(const std::string& name) {
    const auto stub = v1::AdminService::NewStub(*OpenChannel({options_.listen, true}));
    while (true) {
      grpc::ClientContext context;
      v1::ListWorkersResponse response;
      ASSERT_TRUE(stub->ListWorkers(&context, v1::ListWorkersRequest(), &response).ok());
      for (const v1::WorkerInfo& worker : response.workers()) {
        if (worker.name() == name && worker.state() != v1::MEMBER_STATE_JOINING) return;
      }
    }
  }

  void ExpectEqualReplicas() {
    for (std::thread& thread : threads_) thread.join();
    for (const auto& outcome : outcomes_) {
      EXPECT_EQ(outcome->status.code(), absl::StatusCode::kOutOfRange) << outcome->status;
      EXPECT_EQ(outcome->log_hash, outcomes_[0]->log_hash);
      EXPECT_EQ(outcome->state_hash, outcomes_[0]->state_hash);
      EXPECT_NE(outcome->state_hash, 0u);
    }
  }

  const testing::HeldPort port_;
  testing::ScratchFolder folder_;
  Log log_{LogLevel::kWarning};
  server::AggregatorOptions options_;
  std::unique_ptr<server::AggregatorServer> aggregator_;
  std::vector<std::unique_ptr<Outcome>> outcomes_;
  std::vector<std::thread> threads_;
};

TEST_F(ExchangeTest, IncludesThreeWorkersInEveryRound) {
  StartAggregator(3);
  for (const char* name : {"a", "b", "c"}) StartWorker(name);
  ExpectEqualReplicas();
  for (const auto& outcome : outcomes_) EXPECT_EQ(outcome->included, kRounds);
}

// Round 10 stays open until the joiner has read the log and is ACTIVE: two rounds later it has
// samples.
TEST_F(ExchangeTest, IncludesWorkerThatJoinsMidway) {
  StartAggregator(2);
  absl::Notification midway;
  StartWorker("a", [&](uint64_t round) {
    if (round != 10) return;
    midway.Notify();
    AwaitSynced("late");
  });
  StartWorker("b");
  midway.WaitForNotification();
  StartWorker("late");
  ExpectEqualReplicas();
  EXPECT_EQ(outcomes_[2]->included, kRounds - 12);
}

TEST_F(ExchangeTest, SurvivesRestartOfAggregator) {
  StartAggregator(3);
  absl::Notification midway, restarted;
  StartWorker("a", [&](uint64_t round) {
    if (round == 10 && !midway.HasBeenNotified()) midway.Notify();
    if (round == 10) restarted.WaitForNotification();
  });
  StartWorker("b");
  StartWorker("c");
  midway.WaitForNotification();
  aggregator_.reset();
  StartAggregator();
  restarted.Notify();
  ExpectEqualReplicas();
  for (const auto& outcome : outcomes_) {
    EXPECT_EQ(outcome->included, kRounds);
    EXPECT_GE(outcome->stats.reconnects, 1u);
  }
}

}  // namespace
}  // namespace distro::worker
