// Accepted and refused uploads, over real gRPC.
#include "common/net/http/http_get.h"
#include "gmock/gmock.h"
#include "tests/server/service/server_fixture.h"

namespace distro::testing {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// One of two workers, so that the round stays open.
class UploadsTest : public ServerTest {
 protected:
  explicit UploadsTest(int min_workers = 1) : min_workers_(min_workers) {}
  void SetUp() override {
    v1::RunConfig config = SmallConfig();
    config.set_start_workers(2);
    config.set_min_workers(min_workers_);
    Start(config);
    a_ = NewActive("a");
    b_ = NewActive("b");
    rounds_ = a_->Subscribe(&layout_);
    ASSERT_TRUE(rounds_->NextOpen().ok());
  }

  static v1::UploadFrame Frame(uint32_t segment, uint64_t offset, const std::string& data,
                               uint64_t payload_bytes) {
    v1::UploadFrame frame;
    frame.set_segment(segment);
    frame.set_offset(offset);
    frame.set_data(data);
    frame.set_payload_bytes(payload_bytes);
    return frame;
  }
  static v1::UploadFrame Whole(uint32_t segment, const std::string& payload) {
    return Frame(segment, 0, payload, payload.size());
  }
  // The metric's line of the time in which payloads were decoded.
  std::string Validated() {
    const auto page =
        HttpGet(server_->http_address(), "/metrics", absl::Seconds(30), 1 << 20)->body;
    const size_t begin = page.find("phase_seconds_total{phase=\"validate\"}");
    return page.substr(begin, page.find('\n', begin) - begin);
  }
  absl::Status Refusal(const v1::UploadFrame& frame) {
    return a_->Send(a_->Header(0), {frame}).status;
  }

  const int min_workers_;
  std::unique_ptr<TestWorker> a_, b_;
  std::unique_ptr<TestSubscription> rounds_;
};

// Both workers are needed, so that no rule takes the one away that breaks the rules again and
// again.
class RefusalsTest : public UploadsTest {
 protected:
  RefusalsTest() : UploadsTest(2) {}
};

TEST_F(UploadsTest, QuarantinesAfterThreeInvalid) {
  const std::string payload = *Payloads(0, 1)[0];
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(Refusal(Whole(3, payload)).code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(a_->Upload(0, Payloads(0, 1)).status.ok());  // in between: the count begins anew
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(Refusal(Whole(3, payload)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Refusal(Whole(3, payload)).code(), StatusCode::kPermissionDenied);
}

TEST_F(UploadsTest, AcknowledgesRepeat) {
  ASSERT_TRUE(a_->Upload(0, Payloads(0, 1)).status.ok());
  const UploadOutcome again = a_->Upload(0, Payloads(0, 1));
  EXPECT_TRUE(again.status.ok()) << again.status;
  EXPECT_THAT(again.held, ElementsAre(0, 1, 2));
  EXPECT_THAT(again.acks, ElementsAre(0, 1, 2));
}

TEST_F(UploadsTest, DecodesHeldBytesOnce) {
  ASSERT_TRUE(a_->Upload(0, Payloads(0, 1)).status.ok());
  const std::string decoded = Validated();
  EXPECT_THAT(decoded, Not(EndsWith("} 0")));
  ASSERT_TRUE(a_->Upload(0, Payloads(0, 1)).status.ok());
  EXPECT_EQ(a_->Upload(0, Payloads(0, 2)).status.code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(Validated(), decoded);
}

TEST_F(UploadsTest, LimitsRepeatsOfStream) {
  const v1::UploadFrame frame = Whole(0, *Payloads(0, 1)[0]);
  EXPECT_TRUE(a_->Send(a_->Header(0), {frame, frame, frame, frame}).status.ok());
  EXPECT_EQ(a_->Send(a_->Header(0), {frame, frame, frame, frame}).status.code(),
            StatusCode::kResourceExhausted);
}

TEST_F(UploadsTest, OtherBytesAreRefusedAlsoFromANewerProcess) {
  ASSERT_TRUE(a_->Upload(0, Payloads(0, 1)).status.ok());
  EXPECT_EQ(a_->Upload(0, Payloads(0, 2)).status.code(), StatusCode::kAlreadyExists);
  auto newer = NewActive("a", 8);
  EXPECT_EQ(newer->Upload(0, Payloads(0, 2)).status.code(), StatusCode::kAlreadyExists);
}

TEST_F(UploadsTest, ContinuesAfterInterruption) {
  std::vector<SharedBytes> partly = Payloads(0, 1);
  partly[1] = nullptr;
  ASSERT_TRUE(a_->Upload(0, partly).status.ok());
  std::vector<SharedBytes> rest(3);
  rest[1] = Payloads(0, 1)[1];
  const UploadOutcome outcome = a_->Upload(0, rest);
  EXPECT_THAT(outcome.held, ElementsAre(0, 2));
  EXPECT_THAT(outcome.acks, ElementsAre(1));
}

TEST_F(UploadsTest, RefusesUpdateAfterAbstention) {
  v1::UploadHeader header = a_->Header(0);
  header.set_abstain(true);
  ASSERT_TRUE(a_->Send(header, {}).status.ok());
  ASSERT_TRUE(a_->Send(header, {}).status.ok());
  EXPECT_EQ(a_->Upload(0, Payloads(0, 1)).status.code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(a_->Send(header, {Whole(0, *Payloads(0, 1)[0])}).status.code(),
            StatusCode::kInvalidArgument);
}

TEST_F(UploadsTest, OtherRoundsAndEpochsAreRefusedWithTheirReason) {
  const absl::Status future = a_->Upload(1, Payloads(1, 1)).status;
  EXPECT_EQ(future.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(future.message(), HasSubstr("has not begun"));
  v1::UploadHeader header = a_->Header(0);
  header.set_epoch(5);
  const absl::Status epoch = a_->Send(header, {}).status;
  EXPECT_EQ(epoch.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(epoch.message(), HasSubstr("epoch 5"));
}

TEST_F(UploadsTest, OnlyWorkersInSessionUpload) {
  EXPECT_EQ(NewWorker("c")->Upload(0, Payloads(0, 1)).status.code(),
            StatusCode::kFailedPrecondition);
  auto newer = NewActive("a", 8);
  EXPECT_EQ(a_->Upload(0, Payloads(0, 1)).status.code(), StatusCode::kAborted);
  EXPECT_TRUE(newer->Upload(0, Payloads(0, 1)).status.ok());
  auto c = NewActive("c");
  EXPECT_THAT(c->Upload(0, Payloads(0, 1)).status.message(), HasSubstr("no samples"));
}

TEST_F(RefusalsTest, PayloadsOfAnotherLayoutRoundOrSegmentAreRefused) {
  const Layout other =
      *Layout::Create(*Manifest::Create({{"a", {100, 70}}, {"b", {130}}, {"d", {64, 64}}}), 2);
  EXPECT_EQ(Refusal(Whole(0, *UpdatePayload(other, RoundId(0), SegmentId(0), 1))).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Refusal(Whole(0, *UpdatePayload(layout_, RoundId(1), SegmentId(0), 1))).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Refusal(Whole(0, *UpdatePayload(layout_, RoundId(0), SegmentId(1), 1))).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Refusal(Whole(0, *UpdatePayload(layout_, RoundId(0), SegmentId(0), 1, 3))).code(),
            StatusCode::kInvalidArgument);
}

TEST_F(UploadsTest, RefusesDamagedPayload) {
  std::string payload = *Payloads(0, 1)[0];
  payload[payload.size() / 2] ^= 1;
  const absl::Status status = Refusal(Whole(0, payload));
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("worker a"));
  EXPECT_THAT(status.message(), HasSubstr("segment 0"));
  EXPECT_TRUE(a_->Upload(0, Payloads(0, 1)).status.ok());
  EXPECT_TRUE(b_->Upload(0, Payloads(0, 2)).status.ok());
  EXPECT_TRUE(rounds_->NextCommit().ok());
}

TEST_F(RefusalsTest, FramesThatBreakTheRulesAreRefused) {
  const std::string payload = *Payloads(0, 1)[0];
  EXPECT_EQ(Refusal(Whole(3, payload)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Refusal(Frame(0, 0, payload, 1 << 30)).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Refusal(Frame(0, 1, payload, payload.size())).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Refusal(Frame(0, 0, "", payload.size())).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(Refusal(Frame(0, 0, payload.substr(0, 9), payload.size())).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(a_->Send(a_->Header(0),
                     {Frame(0, 0, payload.substr(0, 9), payload.size()), Whole(1, payload)})
                .status.code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(Refusal(Frame(0, 0, std::string(kMaxFrameBytes + 1, 'x'), payload.size())).code(),
            StatusCode::kInvalidArgument);
}

TEST_F(UploadsTest, RefusesMessageAbove1MiB) {
  EXPECT_EQ(Refusal(Frame(0, 0, std::string(2 << 20, 'x'), 2 << 20)).code(),
            StatusCode::kResourceExhausted);
}

TEST_F(UploadsTest, LeavesNothingWhenCancelled) {
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    auto stream = a_->stub()->UploadUpdate(&context);
    v1::UploadUpdateRequest request;
    *request.mutable_header() = a_->Header(0);
    stream->Write(request);
    *request.mutable_frame() = Frame(0, 0, "abc", Payloads(0, 1)[0]->size());
    stream->Write(request);
    if (i % 2 == 0) {
      v1::UploadUpdateResponse response;
      EXPECT_TRUE(stream->Read(&response));
    }
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_THAT(a_->Upload(0, Payloads(0, 1)).held, IsEmpty());
}

TEST_F(UploadsTest, RequiresHeaderFirst) {
  grpc::ClientContext context;
  auto stream = a_->stub()->UploadUpdate(&context);
  v1::UploadUpdateRequest request;
  *request.mutable_frame() = Whole(0, "abc");
  stream->Write(request);
  stream->WritesDone();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

}  // namespace
}  // namespace distro::testing
