// Sessions, snapshots, subscriptions, administration, health and HTTP, over real connections.
#include "absl/strings/match.h"
#include "absl/synchronization/notification.h"
#include "common/base/checksum.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "common/model/checkpoint/snapshot.h"
#include "common/net/http/http_get.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "server/log/epoch_file.h"
#include "tests/server/service/server_fixture.h"

namespace distro::testing {
namespace {

using absl::StatusCode;
using ::testing::HasSubstr;

class SessionsTest : public ServerTest {
 protected:
  v1::ListWorkersResponse ListWorkers() {
    auto stub = v1::AdminService::NewStub(TestChannel(server_->grpc_address()));
    grpc::ClientContext context;
    v1::ListWorkersResponse response;
    EXPECT_TRUE(stub->ListWorkers(&context, {}, &response).ok());
    return response;
  }
  v1::GetRunResponse GetRun() {
    auto stub = v1::AdminService::NewStub(TestChannel(server_->grpc_address()));
    grpc::ClientContext context;
    v1::GetRunResponse response;
    EXPECT_TRUE(stub->GetRun(&context, {}, &response).ok());
    return response;
  }
  std::string Get(const std::string& path, int expected_status = 200) {
    const auto result = HttpGet(server_->http_address(), path, absl::Seconds(30), 64 << 20);
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return "";
    EXPECT_EQ(result->status, expected_status) << path;
    return result->body;
  }
  absl::StatusOr<std::string> Download(TestWorker* worker, const std::string& sha256,
                                       uint64_t offset) {
    v1::DownloadSnapshotRequest request;
    request.set_sha256(sha256);
    request.set_offset(offset);
    grpc::ClientContext context;
    auto reader = worker->stub()->DownloadSnapshot(&context, request);
    std::string bytes;
    v1::DownloadSnapshotResponse frame;
    while (reader->Read(&frame)) {
      EXPECT_EQ(frame.offset(), offset + bytes.size());
      bytes += frame.data();
    }
    const absl::Status status = FromGrpcStatus(reader->Finish());
    if (!status.ok()) return status;
    return bytes;
  }
};

TEST_F(SessionsTest, JoinTellsAllThatAWorkerNeeds) {
  Start();
  auto a = NewWorker("a");
  ASSERT_TRUE(a->Join().ok());
  const v1::JoinResponse& joined = a->joined();
  EXPECT_THAT(joined.run_id(), ::testing::StartsWith("small-"));
  EXPECT_EQ(joined.config().kept_per_block(), 4u);
  EXPECT_THAT(joined.model_config_json(), HasSubstr("model_type"));
  EXPECT_EQ(joined.manifest_hash(),
            std::string(layout_.manifest().hash().begin(), layout_.manifest().hash().end()));
  EXPECT_EQ((joined.epoch() - 1) >> kEpochRandomBits,
            1'700'000'000u);  // when FakeClock begins
  EXPECT_EQ(joined.lease().seconds(), 1000);
}

TEST_F(SessionsTest, OtherDataAndOtherRunsAreRefused) {
  Start();
  ASSERT_TRUE(NewWorker("a")->Join("one").ok());
  EXPECT_EQ(NewWorker("b")->Join("two").code(), StatusCode::kFailedPrecondition);
  v1::JoinRequest request;
  auto c = NewWorker("c");
  *request.mutable_worker() = c->identity();
  request.set_data_fingerprint("one");
  request.set_run_id("another-run");
  v1::JoinResponse response;
  grpc::ClientContext context;
  EXPECT_EQ(c->stub()->Join(&context, request, &response).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(SessionsTest, DownloadsSnapshotFromAnyOffset) {
  Start();
  auto a = NewWorker("a");
  ASSERT_TRUE(a->Join().ok());
  const v1::SnapshotInfo& snapshot = a->joined().snapshot();
  const auto whole = Download(a.get(), snapshot.sha256(), 0);
  ASSERT_TRUE(whole.ok()) << whole.status();
  EXPECT_EQ(whole->size(), snapshot.size_bytes());
  const Sha256Digest digest = Sha256(*whole);
  EXPECT_EQ(std::string(digest.begin(), digest.end()), snapshot.sha256());
  EXPECT_EQ(*Download(a.get(), snapshot.sha256(), 1000), whole->substr(1000));
  EXPECT_EQ(*Download(a.get(), snapshot.sha256(), whole->size()), "");
  EXPECT_EQ(Download(a.get(), snapshot.sha256(), whole->size() + 1).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Download(a.get(), std::string(32, 'x'), 0).status().code(), StatusCode::kNotFound);
}

TEST_F(SessionsTest, RefusesDivergedSubscription) {
  Start();
  auto a = NewActive("a");
  auto rounds = a->Subscribe(&layout_);
  ASSERT_TRUE(rounds->NextOpen().ok());
  ASSERT_TRUE(a->Upload(0, Payloads(0, 1)).status.ok());
  ASSERT_TRUE(rounds->NextCommit().ok());
  const absl::Status wrong = a->Subscribe(&layout_, 1, 12345)->Next().status();
  EXPECT_EQ(wrong.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(wrong.message(), HasSubstr("diverged"));
  const absl::Status ahead = a->Subscribe(&layout_, 9, 12345)->Next().status();
  EXPECT_EQ(ahead.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(ahead.message(), HasSubstr("ahead"));
  EXPECT_EQ(NewWorker("b")->Subscribe(&layout_)->Next().status().code(),
            StatusCode::kFailedPrecondition);
}

TEST_F(SessionsTest, EndsStreamsOfOlderProcess) {
  Start();
  auto old = NewActive("a", 7);
  auto rounds = old->Subscribe(&layout_);
  ASSERT_TRUE(rounds->NextOpen().ok());
  auto newer = NewWorker("a", 8);
  ASSERT_TRUE(newer->Join().ok());
  EXPECT_EQ(rounds->Next().status().code(), StatusCode::kAborted);
  EXPECT_EQ(old->Heartbeat(0, 0).directive(), v1::DIRECTIVE_REPLACED);
  EXPECT_EQ(newer->Heartbeat(0, 0).directive(), v1::DIRECTIVE_CONTINUE);
}

// It would miss the deadline of a round that it cannot take part in yet.
TEST_F(SessionsTest, ActivatesWorkerOnceItHasLoaded) {
  Start();
  auto a = NewWorker("a");
  ASSERT_TRUE(a->Join().ok());
  a->HeartbeatWhileLoading();
  EXPECT_EQ(ListWorkers().workers(0).state(), v1::MEMBER_STATE_JOINING);
  a->Heartbeat(0, 0);
  EXPECT_EQ(ListWorkers().workers(0).state(), v1::MEMBER_STATE_ACTIVE);
}

TEST_F(SessionsTest, AfterALeaseOfSilenceAWorkerMustRejoin) {
  Start();
  auto a = NewActive("a");
  auto rounds = a->Subscribe(&layout_);
  ASSERT_TRUE(rounds->NextOpen().ok());
  Advance(absl::Seconds(1001));
  EXPECT_EQ(rounds->Next().status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(a->Heartbeat(0, 0).directive(), v1::DIRECTIVE_REJOIN);
}

TEST_F(SessionsTest, SlowAndCancelledSubscribersHoldNobody) {
  Start();
  auto a = NewActive("a");
  auto rounds = a->Subscribe(&layout_);
  std::vector<std::unique_ptr<TestWorker>> others;
  std::vector<std::unique_ptr<TestSubscription>> never_read;
  for (int i = 0; i < 6; ++i) {
    others.push_back(NewWorker(absl::StrCat("slow", i)));
    ASSERT_TRUE(others.back()->Join().ok());
    never_read.push_back(others.back()->Subscribe(&layout_));
  }
  for (uint64_t r = 0; r < 5; ++r) {
    ASSERT_TRUE(rounds->NextOpen().ok());
    ASSERT_TRUE(a->Upload(r, Payloads(r, r)).status.ok());
    ASSERT_TRUE(rounds->NextCommit().ok());
    never_read.pop_back();  // cancels it
  }
}

TEST_F(SessionsTest, CreatesRunAtEmptyAggregator) {
  StartEmpty();
  EXPECT_EQ(GetRun().state(), v1::RUN_STATE_EMPTY);
  EXPECT_EQ(NewWorker("a")->Join().code(), StatusCode::kUnavailable);
  EXPECT_THAT(Get("/readyz?verbose"), HasSubstr("there is no run yet"));
  EXPECT_THAT(Get("/status.json"), HasSubstr("\"state\":\"empty\""));

  // The snapshot as a run would have it: taken from another aggregator's folder.
  const std::string path = folder_.File("snapshot");
  TensorBuffer parameters(layout_);
  ASSERT_TRUE(WriteSnapshot(path, layout_, parameters, {}).ok());
  const std::string bytes = *ReadFile(path);
  const Sha256Digest digest = Sha256(bytes);
  v1::CreateRunRequest header;
  *header.mutable_header()->mutable_config() = SmallConfig();
  header.mutable_header()->set_model_config_json("{}");
  header.mutable_header()->set_snapshot_bytes(bytes.size());
  header.mutable_header()->set_snapshot_sha256(digest.data(), digest.size());

  auto stub = v1::AdminService::NewStub(TestChannel(server_->grpc_address()));
  const auto send = [&](uint64_t until) {
    grpc::ClientContext context;
    auto stream = stub->CreateRun(&context);
    stream->Write(header);
    v1::CreateRunResponse response;
    if (!stream->Read(&response)) return std::make_pair(response, FromGrpcStatus(stream->Finish()));
    if (!response.has_run_id() && response.offset() < until) {
      v1::CreateRunRequest frame;
      frame.mutable_frame()->set_offset(response.offset());
      frame.mutable_frame()->set_data(bytes.substr(response.offset(), until - response.offset()));
      stream->Write(frame);
    }
    stream->WritesDone();
    while (stream->Read(&response)) {
    }
    return std::make_pair(response, FromGrpcStatus(stream->Finish()));
  };
  EXPECT_EQ(send(1000).second.code(), StatusCode::kCancelled);  // cut off
  auto [response, status] = send(bytes.size());
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_THAT(response.run_id(), ::testing::StartsWith("small-"));
  const auto again = send(bytes.size());
  EXPECT_TRUE(again.second.ok()) << again.second;
  EXPECT_EQ(again.first.run_id(), response.run_id());
  header.mutable_header()->mutable_config()->set_seed(99);
  EXPECT_EQ(send(bytes.size()).second.code(), StatusCode::kFailedPrecondition);

  EXPECT_EQ(GetRun().state(), v1::RUN_STATE_WAITING);
  EXPECT_TRUE(NewWorker("a")->Join().ok());
}

TEST_F(SessionsTest, OperatorsSeeTheRunAndItsWorkers) {
  v1::RunConfig config = SmallConfig();
  config.set_start_workers(2);
  Start(config);
  auto a = NewActive("a");
  EXPECT_EQ(GetRun().state(), v1::RUN_STATE_WAITING);
  EXPECT_FALSE(GetRun().reason().empty());
  auto b = NewActive("b");
  auto rounds = b->Subscribe(&layout_);
  ASSERT_TRUE(rounds->NextOpen().ok());
  auto stub = v1::AdminService::NewStub(TestChannel(server_->grpc_address()));
  grpc::ClientContext context;
  v1::ListWorkersResponse workers;
  ASSERT_TRUE(stub->ListWorkers(&context, {}, &workers).ok());
  ASSERT_EQ(workers.workers_size(), 2);
  EXPECT_EQ(workers.workers(0).name(), "a");
  EXPECT_EQ(workers.workers(0).state(), v1::MEMBER_STATE_ACTIVE);
  EXPECT_THAT(Get("/status.json"), HasSubstr("\"name\":\"a\""));
}

TEST_F(SessionsTest, MetricsTellWhatHappened) {
  Start();
  auto a = NewActive("a");
  auto rounds = a->Subscribe(&layout_);
  ASSERT_TRUE(rounds->NextOpen().ok());
  ASSERT_TRUE(a->Upload(0, Payloads(0, 1)).status.ok());
  EXPECT_FALSE(a->Upload(0, Payloads(0, 2)).status.ok());
  ASSERT_TRUE(rounds->NextOpen().status().code() == StatusCode::kInternal);  // the commit
  ASSERT_TRUE(rounds->NextOpen().ok());
  const std::string metrics = Get("/metrics");
  EXPECT_THAT(metrics, HasSubstr("distro_aggregator_rounds_total{outcome=\"complete\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("distro_aggregator_updates_received_total 1\n"));
  EXPECT_THAT(metrics, HasSubstr("distro_aggregator_workers{state=\"active\"} 1\n"));
  EXPECT_THAT(metrics,
              HasSubstr("distro_aggregator_worker_included_updates_total{worker=\"a\"} 1\n"));
  EXPECT_THAT(metrics, HasSubstr("distro_aggregator_state_hash_mismatches_total 0\n"));
  EXPECT_THAT(metrics, HasSubstr("distro_aggregator_insecure 1\n"));
  EXPECT_THAT(Get("/metrics/workers"), HasSubstr("distro_worker_round{worker=\"a\"} 0\n"));
  EXPECT_THAT(Get("/healthz"), HasSubstr("ok"));
  EXPECT_THAT(Get("/readyz"), HasSubstr("ready"));
}

// It stays ready, names the disk, acknowledges no commit, and continues by itself.
TEST_F(SessionsTest, ContinuesAfterDiskFault) {
  Start();
  auto a = NewActive("a");
  auto rounds = a->Subscribe(&layout_);
  ASSERT_TRUE(rounds->NextOpen().ok());
  EXPECT_THAT(Get("/readyz?verbose"), HasSubstr("[+] disk"));
  absl::Notification failed;
  disk_.SetHook([&failed](const DiskCall& call, uint64_t) {
    if (call.operation == server::DiskOperation::kLink && !failed.HasBeenNotified())
      failed.Notify();
  });
  disk_.Fail({.operation = server::DiskOperation::kLink, .path_part = "rounds"});
  ASSERT_TRUE(a->Upload(0, Payloads(0, 1)).status.ok());
  failed.WaitForNotification();
  while (
      !absl::StrContains(Get("/readyz?verbose"), "[-] disk")) {  // the round thread notes it next
  }
  EXPECT_THAT(Get("/metrics"), HasSubstr("log_errors_total{operation=\"link\"} 1\n"));
  EXPECT_EQ(a->Heartbeat(0, 0).head_round(), 0u);
  disk_.Heal();
  Advance(absl::Seconds(1));
  EXPECT_TRUE(rounds->NextCommit().ok());
  EXPECT_THAT(Get("/readyz?verbose"), HasSubstr("[+] disk"));
}

// No error comes, and no round.
TEST_F(SessionsTest, IsUnreadyWhileDiskHangs) {
  Start();
  auto a = NewActive("a");
  auto rounds = a->Subscribe(&layout_);
  ASSERT_TRUE(rounds->NextOpen().ok());
  absl::Notification hangs, answers;
  disk_.SetHook([&](const DiskCall& call, uint64_t) {
    if (call.operation != server::DiskOperation::kLink || hangs.HasBeenNotified()) return;
    hangs.Notify();
    answers.WaitForNotification();
  });
  ASSERT_TRUE(a->Upload(0, Payloads(0, 1)).status.ok());
  hangs.WaitForNotification();
  EXPECT_THAT(Get("/readyz?verbose"), HasSubstr("[+] rounds"));
  clock_.Advance(absl::Seconds(61));
  EXPECT_THAT(Get("/readyz?verbose", 503), HasSubstr("[-] rounds: one step has taken 61 s"));
  answers.Notify();
  EXPECT_TRUE(rounds->NextCommit().ok());
}

TEST_F(SessionsTest, DrainingIsToldToEverybodyAndTheOpenRoundEnds) {
  Start();
  auto a = NewActive("a");
  auto rounds = a->Subscribe(&layout_);
  ASSERT_TRUE(rounds->NextOpen().ok());
  server_->Drain();
  const v1::HeartbeatResponse response = a->Heartbeat(0, 0);
  EXPECT_EQ(response.directive(), v1::DIRECTIVE_DRAIN);
  EXPECT_EQ(response.run_state(), v1::RUN_STATE_DRAINING);
  const absl::Status refused = NewWorker("b")->Join();
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  EXPECT_EQ(ReasonOf(refused), "draining");
  EXPECT_EQ(RetryAfterOf(refused), absl::Seconds(5));
  Get("/readyz", 503);
  EXPECT_TRUE(a->Upload(0, Payloads(0, 1)).status.ok());
  EXPECT_TRUE(rounds->NextCommit().ok());
  EXPECT_EQ(ReasonOf(rounds->Next().status()), "draining");
  EXPECT_EQ(ReasonOf(a->Upload(1, Payloads(1, 1)).status), "draining");
  server_->AwaitDrained();
}

TEST_F(SessionsTest, EndsDrainAtGrace) {
  Start();
  auto a = NewActive("a");
  auto rounds = a->Subscribe(&layout_);
  ASSERT_TRUE(rounds->NextOpen().ok());
  server_->Drain();
  Advance(absl::Seconds(31));
  server_->AwaitDrained();
  EXPECT_EQ(ReasonOf(rounds->Next().status()), "draining");
  EXPECT_EQ(ReasonOf(a->Upload(0, Payloads(0, 1)).status), "draining");
}

TEST_F(SessionsTest, StopsWhileStreamsAreOpen) {
  Start();
  auto a = NewActive("a");
  auto rounds = a->Subscribe(&layout_);
  ASSERT_TRUE(rounds->NextOpen().ok());
  grpc::ClientContext context;
  auto stream = a->stub()->UploadUpdate(&context);
  v1::UploadUpdateRequest request;
  *request.mutable_header() = a->Header(0);
  stream->Write(request);
  server_ = nullptr;
  EXPECT_FALSE(rounds->Next().ok());
  v1::UploadUpdateResponse response;
  while (stream->Read(&response)) {
  }
  EXPECT_FALSE(stream->Finish().ok());
}

TEST_F(SessionsTest, AllowsTwoAggregatorsInOneProcess) {
  Start();
  server::AggregatorOptions options = Options();
  auto same = server::AggregatorServer::Start(options, &clock_, &log_, [](absl::Status) {});
  EXPECT_EQ(same.status().code(), StatusCode::kFailedPrecondition);
  options.data_dir = folder_.File("other");
  auto other = server::AggregatorServer::Start(options, &clock_, &log_, [](absl::Status) {});
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE((*other)->grpc_address(), server_->grpc_address());
}

// The service that load balancers ask: request {service: ""}, answer {status: SERVING = 1}, as raw
// protobuf bytes.
TEST_F(SessionsTest, HealthSaysServingUntilTheServerDrains) {
  Start();
  const auto check = [this] {
    grpc::GenericStub stub(TestChannel(server_->grpc_address()));
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const grpc::Slice service_of_any_name(std::string("\x0a\x00", 2));
    const auto call = stub.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check",
                                            grpc::ByteBuffer(&service_of_any_name, 1), &queue);
    call->StartCall();
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    EXPECT_TRUE(queue.Next(&tag, &ok));
    EXPECT_TRUE(status.ok()) << status.error_message();
    grpc::Slice bytes;
    (void)answer.DumpToSingleSlice(&bytes);
    return std::string(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
  };
  EXPECT_EQ(check(), std::string("\x08\x01"));
  server_->Drain();
  EXPECT_EQ(check(), std::string("\x08\x02"));
}

}  // namespace
}  // namespace distro::testing
