// grpc_server_* of a whole aggregator: calls, messages, codes and times by method, nothing of what
// peers name.
#include "server/metrics/call_metrics.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/net/http/http_get.h"
#include "common/net/telemetry/metric_families.h"
#include "gmock/gmock.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "tests/server/service/server_fixture.h"
#include "tests/testing/metrics_doc.h"

namespace distro::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class CallMetricsTest : public ServerTest {
 protected:
  std::string Page() {
    const auto answer = HttpGet(server_->http_address(), "/metrics", absl::Seconds(30), 64 << 20);
    return answer.ok() ? answer->body : "";
  }
  static std::string Series(const std::string& name, const std::string& type,
                            const std::string& method, const std::string& more = "") {
    return absl::StrCat("grpc_server_", name, "{grpc_type=\"", type,
                        "\",grpc_service=\"distro.v1.AggregatorService\",grpc_method=\"", method,
                        "\"", more, "} ");
  }
  // The page once it has `text`; calls are counted as gRPC is done with them.
  bool Await(const std::string& text) {
    const absl::Time deadline = absl::Now() + absl::Seconds(30);
    while (absl::Now() < deadline) {
      if (absl::StrContains(Page(), text)) return true;
    }
    return false;
  }
};

TEST(CallMetricsPageTest, DescribesMetrics) {
  EXPECT_THAT(MetricsDocFaults(MetricsPage(), server::CallMetrics().Collect(), "grpc_server_"),
              IsEmpty());
}

TEST_F(CallMetricsTest, ShowsMethodsFromStart) {
  Start();
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr(Series("started_total", "unary", "Join") + "0\n"));
  EXPECT_THAT(
      page, HasSubstr(Series("handled_total", "bidi_stream", "UploadUpdate", ",grpc_code=\"OK\"") +
                      "0\n"));
  EXPECT_THAT(page, HasSubstr("grpc_service=\"distro.v1.AdminService\",grpc_method=\"GetRun\""));
  EXPECT_THAT(page,
              HasSubstr("grpc_service=\"distro.v1.LinkService\",grpc_method=\"MeasureLink\""));
}

TEST_F(CallMetricsTest, CountsCallsMessagesAndCodes) {
  Start();
  auto a = NewActive("a");
  auto rounds = a->Subscribe(&layout_);
  ASSERT_TRUE(rounds->NextOpen().ok());
  ASSERT_TRUE(a->Upload(0, Payloads(0, 1)).status.ok());
  EXPECT_FALSE(NewWorker("Bad")->Join().ok());
  EXPECT_TRUE(Await(Series("handled_total", "unary", "Join", ",grpc_code=\"OK\"") + "1\n"));
  EXPECT_TRUE(
      Await(Series("handled_total", "unary", "Join", ",grpc_code=\"InvalidArgument\"") + "1\n"));
  EXPECT_TRUE(
      Await(Series("handled_total", "bidi_stream", "UploadUpdate", ",grpc_code=\"OK\"") + "1\n"));
  const std::string page = Page();
  EXPECT_THAT(page, HasSubstr(Series("started_total", "server_stream", "SubscribeRounds") + "1\n"));
  // A header and a frame for each segment; what is held and an acknowledgement for each.
  const std::string messages = absl::StrCat(layout_.segments() + 1, "\n");
  EXPECT_THAT(page,
              HasSubstr(Series("msg_received_total", "bidi_stream", "UploadUpdate") + messages));
  EXPECT_THAT(page, HasSubstr(Series("msg_sent_total", "bidi_stream", "UploadUpdate") + messages));
  EXPECT_THAT(page, HasSubstr(Series("handling_seconds_count", "unary", "Join") + "2\n"));
}

TEST_F(CallMetricsTest, MethodsThatPeersInventAreNoLabels) {
  Start();
  grpc::GenericStub stub(
      grpc::CreateChannel(server_->grpc_address(), grpc::InsecureChannelCredentials()));
  for (const char* method : {"/distro.v1.AggregatorService/Invented", "/other.Service/Join"}) {
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    auto call = stub.PrepareUnaryCall(&context, method, grpc::ByteBuffer(), &queue);
    call->StartCall();
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->Finish(&answer, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    ASSERT_TRUE(queue.Next(&tag, &ok));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::UNIMPLEMENTED);
    queue.Shutdown();
  }
  EXPECT_THAT(Page(), Not(HasSubstr("Invented")));
  EXPECT_THAT(Page(), Not(HasSubstr("other.Service")));
}

}  // namespace
}  // namespace distro::testing
