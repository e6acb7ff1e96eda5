// MeasureLink against an aggregator: what it answers, and its bounds.
#include <vector>

#include "common/base/reason.h"
#include "common/client/link_bench.h"
#include "distro/v1/link.grpc.pb.h"
#include "gtest/gtest.h"
#include "server/service/link_service.h"
#include "tests/server/service/tls_fixture.h"

namespace distro::server {
namespace {

using absl::StatusCode;

class LinkTest : public testing::ServerTest {
 protected:
  LinkTest() { Start(); }
};

class Measuring {
 public:
  explicit Measuring(const std::string& address) : Measuring(testing::TestChannel(address)) {}
  explicit Measuring(const std::shared_ptr<grpc::Channel>& channel)
      : stub_(v1::LinkService::NewStub(channel)), stream_(stub_->MeasureLink(&context_)) {}
  ~Measuring() { context_.TryCancel(); }

  // The answer to a message; the stream's status when there is none.
  absl::StatusOr<v1::MeasureLinkResponse> Ask(uint64_t data, uint32_t answer_bytes) {
    v1::MeasureLinkRequest request;
    request.set_data(std::string(data, 'x'));
    request.set_answer_bytes(answer_bytes);
    v1::MeasureLinkResponse answer;
    if (stream_->Write(request) && stream_->Read(&answer)) return answer;
    return FromGrpcStatus(stream_->Finish());
  }
  absl::Status Finish() {
    stream_->WritesDone();
    return FromGrpcStatus(stream_->Finish());
  }

 private:
  grpc::ClientContext context_;
  std::unique_ptr<v1::LinkService::Stub> stub_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::MeasureLinkRequest, v1::MeasureLinkResponse>>
      stream_;
};

TEST_F(LinkTest, AnswersEachMessageAndSaysOnceWhatTheRunNeeds) {
  Measuring link(server_->grpc_address());
  auto answer = link.Ask(1000, 3000);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->received_bytes(), 1000u);
  EXPECT_EQ(answer->data().size(), 3000u);
  uint64_t update = 0;
  for (const SharedBytes& payload : Payloads(0, 1)) update += payload->size();
  EXPECT_GE(answer->needs().update_bytes(), update);
  EXPECT_EQ(answer->needs().result_bytes(), 0u) << "no round has closed";
  answer = link.Ask(500, 0);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->received_bytes(), 1500u);
  EXPECT_FALSE(answer->has_needs());
  EXPECT_TRUE(link.Finish().ok());
}

TEST_F(LinkTest, RefusesMessagesAboveTheBound) {
  Measuring up(server_->grpc_address()), down(server_->grpc_address());
  EXPECT_EQ(up.Ask(kMaxLinkMessageBytes + 1, 0).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(down.Ask(0, kMaxLinkMessageBytes + 1).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(LinkTest, BoundsBytesOfStream) {
  Measuring link(server_->grpc_address());
  absl::Status status;
  uint64_t moved = 0;
  for (; status.ok() && moved <= kMaxLinkBytes; moved += kMaxLinkMessageBytes)
    status = link.Ask(0, kMaxLinkMessageBytes).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "limit");
  EXPECT_EQ(moved, kMaxLinkBytes + kMaxLinkMessageBytes);
}

TEST_F(LinkTest, BoundsTimeOfStream) {
  Measuring link(server_->grpc_address());
  ASSERT_TRUE(link.Ask(1, 0).ok());
  clock_.Advance(kMaxLinkTime + absl::Seconds(1));
  EXPECT_EQ(link.Ask(1, 0).status().code(), StatusCode::kDeadlineExceeded);
}

TEST_F(LinkTest, FewAreOpenAtOneTime) {
  std::vector<std::unique_ptr<Measuring>> links;
  for (int i = 0; i < limits_.link_streams; ++i) {
    links.push_back(std::make_unique<Measuring>(server_->grpc_address()));
    ASSERT_TRUE(links.back()->Ask(0, 0).ok()) << i;
  }
  const absl::Status status = Measuring(server_->grpc_address()).Ask(0, 0).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(ReasonOf(status), "limit");
  EXPECT_TRUE(links[0]->Finish().ok());
}

TEST_F(LinkTest, MovesWhatBenchAsks) {
  const auto measured =
      MeasureLink({.channel = {.aggregator = server_->grpc_address(), .insecure = true},
                   .update_bytes = 300'000,
                   .result_bytes = 700'000},
                  [](absl::string_view) {});
  ASSERT_TRUE(measured.ok()) << measured.status();
  for (const LinkTransfer& up : {measured->up_alone, measured->up_together})
    EXPECT_EQ(up.bytes, 300'000u);
  for (const LinkTransfer& down : {measured->down_alone, measured->down_together}) {
    EXPECT_EQ(down.bytes, 700'000u);
    EXPECT_GT(down.seconds, 0);
  }
  EXPECT_GT(measured->round_trip_seconds, 0);
  EXPECT_LT(measured->round_trip_seconds, 20);
}

using NamedLinkTest = testing::TlsServerTest;

TEST_F(NamedLinkTest, LeavesPlacesToOthers) {
  std::vector<std::unique_ptr<Measuring>> links;
  for (int i = 0; i < limits_.link_streams + 2; ++i) {
    links.push_back(std::make_unique<Measuring>(WithToken("token-worker")));
    ASSERT_TRUE(links.back()->Ask(1, 1).ok()) << i;
  }
  const absl::Status oldest = links[0]->Ask(1, 1).status();
  // Its answer has come, but the server may not know it yet and then cancels the call.
  if (!absl::IsCancelled(oldest)) {
    EXPECT_EQ(oldest.code(), StatusCode::kUnavailable) << oldest;
    EXPECT_EQ(ReasonOf(oldest), "limit") << oldest;
  }
  Measuring other(WithToken("token-admin"));
  EXPECT_TRUE(other.Ask(1, 1).ok());
  EXPECT_TRUE(links.back()->Ask(1, 1).ok());
  EXPECT_TRUE(links[links.size() - 2]->Ask(1, 1).ok());
}

TEST_F(NamedLinkTest, CountsForRateOfName) {
  limits_.worker_bytes_per_second = 64 << 10;
  StartTls();
  Measuring link(WithToken("token-worker"));
  constexpr uint32_t kBytes = 64 << 10;
  uint64_t moved = 0;
  absl::Status status;
  for (; status.ok() && moved < uint64_t{64} << 20; moved += 2 * kBytes)
    status = link.Ask(kBytes, kBytes).status();
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
  EXPECT_EQ(ReasonOf(status), "limit");
  EXPECT_LE(moved, uint64_t{3} << 20);
  EXPECT_TRUE(Measuring(WithToken("token-admin")).Ask(kBytes, kBytes).ok());
}

}  // namespace
}  // namespace distro::server
