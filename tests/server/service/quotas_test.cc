// Limits of one credential, over TLS: its calls and places, without effect on other credentials.
// The clock is the test's.
#include "common/base/reason.h"
#include "common/net/http/http_get.h"
#include "gmock/gmock.h"
#include "server/limits/call_rates.h"
#include "server/limits/stream_limiter.h"
#include "tests/server/service/tls_fixture.h"

namespace distro::testing {
namespace {

using absl::StatusCode;

constexpr int kRate = 50;
constexpr int kBurst = 4 * kRate;
constexpr int kHeavyBurst = kBurst / static_cast<int>(server::kHeavyCall);

double MetricOf(const server::AggregatorServer& server, const std::string& series) {
  const auto page = HttpGet(server.http_address(), "/metrics", absl::Seconds(30), 64 << 20);
  const size_t at = page.ok() ? page->body.find("\ndistro_aggregator_" + series + " ") : 0;
  return !page.ok() || at == std::string::npos
             ? -1
             : std::stod(page->body.substr(page->body.find(' ', at + 1)));
}

absl::Status ListWorkers(const std::shared_ptr<grpc::Channel>& channel) {
  grpc::ClientContext context;
  v1::ListWorkersResponse workers;
  return FromGrpcStatus(v1::AdminService::NewStub(channel)->ListWorkers(
      &context, v1::ListWorkersRequest(), &workers));
}

absl::Status Heartbeat(TestWorker* worker) {
  v1::HeartbeatRequest request;
  *request.mutable_worker() = worker->identity();
  v1::HeartbeatResponse response;
  grpc::ClientContext context;
  return FromGrpcStatus(worker->stub()->Heartbeat(&context, request, &response));
}

void ExpectLimit(const absl::Status& status) {
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(ReasonOf(status), "limit") << status;
  EXPECT_TRUE(RetryAfterOf(status).has_value()) << status;
}

class QuotasTest : public TlsServerTest {
 protected:
  // With a rate that a test reaches.
  void StartSlow() {
    limits_.calls_per_second = kRate;
    StartTls();
  }
  double Metric(const std::string& series) { return MetricOf(*server_, series); }
  std::string RunId() {
    const auto admin = v1::AdminService::NewStub(WithToken("token-archiver"));
    grpc::ClientContext context;
    v1::GetRunResponse run;
    EXPECT_TRUE(admin->GetRun(&context, v1::GetRunRequest(), &run).ok());
    return run.run_id();
  }
  std::unique_ptr<TestSubscription> Follow(TestWorker* archiver, const std::string& run_id) {
    v1::SubscribeRoundsRequest request;
    request.set_run_id(run_id);
    return std::make_unique<TestSubscription>(archiver->stub(), request, &layout_);
  }
};

TEST_F(QuotasTest, LimitsCallsOfCredential) {
  StartSlow();
  const auto viewer = WithToken("token-viewer"), admin = WithToken("token-admin");
  for (int i = 0; i < kBurst; ++i) ASSERT_TRUE(ListWorkers(viewer).ok()) << i;
  ExpectLimit(ListWorkers(viewer));
  EXPECT_TRUE(ListWorkers(admin).ok());
  EXPECT_EQ(Metric("calls_refused_total{reason=\"limit\"}"), 1);
  clock_.Advance(absl::Seconds(1));
  for (int i = 0; i < kRate; ++i) ASSERT_TRUE(ListWorkers(viewer).ok()) << i;
  ExpectLimit(ListWorkers(viewer));
}

TEST_F(QuotasTest, AllowsHonestHeartbeats) {
  StartSlow();
  TestWorker worker(WithToken("token-worker"), "token-worker", 7);
  ASSERT_TRUE(worker.Join().ok());
  for (int i = 0; i < kBurst + 100; ++i) {
    ASSERT_TRUE(Heartbeat(&worker).ok()) << i;
    clock_.Advance(Options().heartbeat_interval / 10);
  }
}

// A line in the log is written where a change is counted.
TEST_F(QuotasTest, JoinsBeyondTheRateChangeNothing) {
  StartSlow();
  const auto channel = WithToken("token-worker");
  int joined = 0;
  for (uint64_t i = 1; i <= 100; ++i) {
    const absl::Status status = TestWorker(channel, "token-worker", i).Join();
    joined += status.ok();
    if (!status.ok()) ExpectLimit(status);
  }
  EXPECT_EQ(joined, kHeavyBurst);
  EXPECT_EQ(Metric("worker_changes_total{reason=\"joined\"}"), kHeavyBurst);
}

TEST_F(QuotasTest, JoinsOfOneProcessAreOneChange) {
  StartTls();
  TestWorker worker(WithToken("token-worker"), "token-worker", 7);
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(worker.Join().ok());
  EXPECT_EQ(Metric("worker_changes_total{reason=\"joined\"}"), 1);
}

TEST_F(QuotasTest, FollowingBeginsAreLimited) {
  StartSlow();
  TestWorker archiver(WithToken("token-archiver"), "", 0);
  absl::Status status;
  int begun = 0;
  while (status.ok() || ReasonOf(status) == "other_run") {
    status = Follow(&archiver, "another")->Next().status();
    ++begun;
  }
  ExpectLimit(status);
  EXPECT_EQ(begun, kHeavyBurst + 1);
}

// Also the places of a whole kind are not filled by one credential.
TEST_F(QuotasTest, AllowsSubscriptionsOfArchiver) {
  limits_.streams = server::kSubscriptionsOfAName + 1;
  StartTls();
  TestWorker worker(WithToken("token-worker"), "token-worker", 7);
  ASSERT_TRUE(worker.Join().ok());
  worker.Heartbeat(0, 0);
  const auto rounds = worker.Subscribe(&layout_);
  ASSERT_TRUE(rounds->NextOpen().ok());
  TestWorker archiver(WithToken("token-archiver"), "", 0);
  const std::string run_id = RunId();
  std::vector<std::unique_ptr<TestSubscription>> followers;
  for (int i = 0; i < server::kSubscriptionsOfAName; ++i) {
    followers.push_back(Follow(&archiver, run_id));
    ASSERT_TRUE(followers.back()->NextOpen().ok()) << i;
  }
  EXPECT_EQ(Metric("open_streams{kind=\"subscription\"}"), server::kSubscriptionsOfAName + 1);
  ASSERT_TRUE(worker.Upload(0, Payloads(0, 1)).status.ok());
  for (auto& follower : followers) ASSERT_TRUE(follower->NextCommit().ok());
  EXPECT_TRUE(rounds->NextCommit().ok());
}

TEST_F(QuotasTest, EndsOldestSubscriptionOfArchiver) {
  TestWorker worker(WithToken("token-worker"), "token-worker", 7);
  ASSERT_TRUE(worker.Join().ok());
  worker.Heartbeat(0, 0);
  const auto rounds = worker.Subscribe(&layout_);
  ASSERT_TRUE(rounds->NextOpen().ok());
  TestWorker archiver(WithToken("token-archiver"), "", 0);
  const std::string run_id = RunId();
  std::vector<std::unique_ptr<TestSubscription>> followers;
  for (int i = 0; i < 3 * server::kSubscriptionsOfAName; ++i) {
    followers.push_back(Follow(&archiver, run_id));
    ASSERT_TRUE(followers.back()->NextOpen().ok()) << i;
    if (i < server::kSubscriptionsOfAName) continue;
    const absl::Status displaced =
        followers[i - server::kSubscriptionsOfAName]->NextCommit().status();
    // Its frame has come, but the server may not know it yet and then cancels the call.
    if (absl::IsCancelled(displaced)) continue;
    EXPECT_EQ(displaced.code(), StatusCode::kUnavailable) << displaced;
    EXPECT_EQ(ReasonOf(displaced), "limit") << displaced;
  }
  EXPECT_EQ(Metric("open_streams{kind=\"subscription\"}"), server::kSubscriptionsOfAName + 1);
  ASSERT_TRUE(worker.Upload(0, Payloads(0, 1)).status.ok());
  EXPECT_TRUE(rounds->NextCommit().ok());
}

TEST_F(QuotasTest, EndsOldestSnapshotTransfer) {
  TestWorker archiver(WithToken("token-archiver"), "", 0);
  struct Transfer {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::UploadSnapshotRequest, v1::UploadSnapshotResponse>>
        stream;
  };
  std::vector<std::unique_ptr<Transfer>> transfers;
  for (int i = 0; i <= server::kSnapshotsOfAName; ++i) {
    transfers.push_back(std::make_unique<Transfer>());
    transfers.back()->stream = archiver.stub()->UploadSnapshot(&transfers.back()->context);
    const double open = std::min(i + 1, server::kSnapshotsOfAName);
    while (i < server::kSnapshotsOfAName && Metric("open_streams{kind=\"snapshot\"}") < open) {
    }
  }
  v1::UploadSnapshotResponse response;
  EXPECT_FALSE(transfers.front()->stream->Read(&response));
  EXPECT_EQ(transfers.front()->stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(Metric("open_streams{kind=\"snapshot\"}"), server::kSnapshotsOfAName);
  transfers.erase(transfers.begin());
  for (auto& transfer : transfers) {
    transfer->context.TryCancel();
    (void)transfer->stream->Finish();
  }
}

// Nobody has a credential: a worker's name counts instead.
class InsecureQuotasTest : public ServerTest {};

TEST_F(InsecureQuotasTest, IsByWorkersName) {
  limits_.calls_per_second = kRate;
  Start();
  auto a = NewWorker("a"), b = NewWorker("b");
  for (int i = 0; i < kBurst; ++i) ASSERT_TRUE(Heartbeat(a.get()).ok()) << i;
  ExpectLimit(Heartbeat(a.get()));
  EXPECT_TRUE(Heartbeat(b.get()).ok());
  EXPECT_EQ(MetricOf(*server_, "calls_refused_total{reason=\"limit\"}"), 1);
}

}  // namespace
}  // namespace distro::testing
