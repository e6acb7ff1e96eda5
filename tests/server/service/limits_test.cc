// Limits of what a peer may take, over real gRPC. The clock is the test's.
#include "common/base/reason.h"
#include "common/net/http/http_get.h"
#include "gmock/gmock.h"
#include "tests/server/service/server_fixture.h"

namespace distro::testing {
namespace {

using absl::StatusCode;

// A stream that is open as long as the test wants.
struct OpenUpload {
  explicit OpenUpload(TestWorker* worker) : stream(worker->stub()->UploadUpdate(&context)) {}
  ~OpenUpload() {
    if (stream == nullptr) return;
    context.TryCancel();
    (void)stream->Finish();
  }

  // False: it was refused.
  bool SendHeader(TestWorker* worker) {
    v1::UploadUpdateRequest request;
    *request.mutable_header() = worker->Header(0);
    v1::UploadUpdateResponse response;
    return stream->Write(request) && stream->Read(&response);
  }
  bool SendFrame(uint64_t offset, const std::string& data, uint64_t payload_bytes) {
    v1::UploadUpdateRequest request;
    request.mutable_frame()->set_offset(offset);
    request.mutable_frame()->set_data(data);
    request.mutable_frame()->set_payload_bytes(payload_bytes);
    return stream->Write(request);
  }
  // Waits for the server to end it.
  absl::Status Status() {
    v1::UploadUpdateResponse response;
    while (stream->Read(&response)) {
    }
    const absl::Status status = FromGrpcStatus(stream->Finish());
    stream = nullptr;
    return status;
  }

  grpc::ClientContext context;
  std::unique_ptr<grpc::ClientReaderWriter<v1::UploadUpdateRequest, v1::UploadUpdateResponse>>
      stream;
};

class LimitsTest : public ServerTest {
 protected:
  void StartTwo() {
    limits_.stall_timeout = absl::Seconds(2);
    v1::RunConfig config = SmallConfig();
    config.set_start_workers(2);
    Start(config);
    a_ = NewActive("a");
    b_ = NewActive("b");
    rounds_ = a_->Subscribe(&layout_);
    ASSERT_TRUE(rounds_->NextOpen().ok());
    payload_ = *Payloads(0, 1)[0];
  }
  double Metric(const std::string& series) {
    const auto page = HttpGet(server_->http_address(), "/metrics", absl::Seconds(30), 64 << 20);
    const size_t at = page.ok() ? page->body.find("\ndistro_aggregator_" + series + " ") : 0;
    return !page.ok() || at == std::string::npos
               ? -1
               : std::stod(page->body.substr(page->body.find(' ', at + 1)));
  }
  // Waits until the frames that are under way were counted.
  void AwaitInflight(double bytes) {
    while (Metric("inflight_bytes") != bytes) NewWorker("nobody")->Heartbeat(0, 0);
  }
  // Time in which the server handles a message does not count, so that one step may not be enough.
  void LetStall() {
    while (Metric("updates_rejected_total{reason=\"stalled\"}") < 1) Advance(absl::Seconds(3));
  }
  void ExpectRoundGoesOn() {
    EXPECT_TRUE(a_->Upload(0, Payloads(0, 1)).status.ok());
    EXPECT_TRUE(b_->Upload(0, Payloads(0, 2)).status.ok());
    EXPECT_TRUE(rounds_->NextCommit().ok());
  }
  static void Expect(const absl::Status& status, StatusCode code, const std::string& reason) {
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_EQ(ReasonOf(status), reason) << status;
  }

  std::unique_ptr<TestWorker> a_, b_;
  std::unique_ptr<TestSubscription> rounds_;
  std::string payload_;
};

TEST_F(LimitsTest, EndsStalledUpload) {
  StartTwo();
  OpenUpload upload(a_.get());
  ASSERT_TRUE(upload.SendHeader(a_.get()));
  ASSERT_TRUE(upload.SendFrame(0, payload_.substr(0, 9), payload_.size()));
  AwaitInflight(static_cast<double>(payload_.size()));
  LetStall();
  Expect(upload.Status(), StatusCode::kDeadlineExceeded, "stalled");
  AwaitInflight(0);
  ExpectRoundGoesOn();
}

TEST_F(LimitsTest, EndsTrickledUpload) {
  StartTwo();
  OpenUpload upload(a_.get());
  ASSERT_TRUE(upload.SendHeader(a_.get()));
  for (size_t i = 0; i + 1 < payload_.size(); ++i) {
    if (!upload.SendFrame(i, payload_.substr(i, 1), payload_.size())) break;
    Advance(absl::Milliseconds(190));
  }
  Expect(upload.Status(), StatusCode::kDeadlineExceeded, "stalled");
}

TEST_F(LimitsTest, EndsStreamWithoutHeader) {
  StartTwo();
  OpenUpload silent(a_.get());
  while (Metric("open_streams{kind=\"upload\"}") < 1) {
  }
  LetStall();
  Expect(silent.Status(), StatusCode::kDeadlineExceeded, "stalled");
}

TEST_F(LimitsTest, EndsOlderUploadOfWorker) {
  StartTwo();
  OpenUpload older(a_.get());
  ASSERT_TRUE(older.SendHeader(a_.get()));
  ASSERT_TRUE(older.SendFrame(0, payload_.substr(0, 9), payload_.size()));
  AwaitInflight(static_cast<double>(payload_.size()));
  EXPECT_TRUE(a_->Upload(0, Payloads(0, 1)).status.ok());
  Expect(older.Status(), StatusCode::kUnavailable, "limit");
  AwaitInflight(0);
}

TEST_F(LimitsTest, AboveItsRateAWorkerIsTold) {
  limits_.worker_bytes_per_second = 64 << 10;
  StartTwo();
  // The same segment again and again is allowed, but not as fast as one can.
  absl::Status status;
  int uploads = 0;
  while (status.ok() && uploads < 20'000) {
    status = a_->Upload(0, Payloads(0, 1)).status;
    ++uploads;
  }
  Expect(status, StatusCode::kResourceExhausted, "limit");
  EXPECT_TRUE(RetryAfterOf(status).has_value());
  EXPECT_GE(Metric("updates_rejected_total{reason=\"limit\"}"), 1);
  EXPECT_TRUE(b_->Upload(0, Payloads(0, 2)).status.ok());
}

TEST_F(LimitsTest, StreamsOfAKindAreLimited) {
  limits_.streams = 2;
  StartTwo();
  auto second = b_->Subscribe(&layout_);
  ASSERT_TRUE(second->NextOpen().ok());
  auto c = NewActive("c");
  Expect(c->Subscribe(&layout_)->Next().status(), StatusCode::kResourceExhausted, "limit");
  second = nullptr;
  while (Metric("open_streams{kind=\"subscription\"}") > 1) {
  }
  EXPECT_TRUE(c->Subscribe(&layout_)->NextOpen().ok());
}

TEST_F(LimitsTest, StreamsWithoutAHeaderMakeRoomForWorkers) {
  limits_.streams = 2;
  StartTwo();
  OpenUpload first(a_.get()), second(a_.get());
  while (Metric("open_streams{kind=\"upload\"}") < 2) {
  }
  EXPECT_TRUE(b_->Upload(0, Payloads(0, 2)).status.ok());
  EXPECT_TRUE(a_->Upload(0, Payloads(0, 1)).status.ok());
  EXPECT_GE(Metric("updates_rejected_total{reason=\"limit\"}"), 1);
}

}  // namespace
}  // namespace distro::testing
