// What happens below the handlers: connections without a credential, of one credential, compressed messages, reflection. Over
// real sockets and gRPC, on a whole aggregator.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/telemetry/http_get.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/service/raw_call.h"
#include "tests/server/service/tls_fixture.h"

namespace distro::testing {
namespace {

constexpr char kGetRun[] = "/distro.v1.AdminService/GetRun";
constexpr char kReflection[] = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr char kListServices[] = "\x3a\x00";  // list_services: ""

class ConnectionsTest : public TlsServerTest {
 protected:
  double Metric(const std::string& series) {
    const auto page = HttpGet(server_->http_address(), "/metrics", absl::Seconds(30), 1 << 20);
    if (!page.ok()) return -1;
    for (const absl::string_view line : absl::StrSplit(page->body, '\n')) {
      const std::vector<absl::string_view> words = absl::StrSplit(line, ' ');
      double value = 0;
      if (words.size() == 2 && words[0] == absl::StrCat("distro_aggregator_", series) &&
          absl::SimpleAtod(words[1], &value)) {
        return value;
      }
    }
    return -1;
  }
  double Ended(const std::string& reason) {
    return Metric(absl::StrCat("connections_ended_total{reason=\"", reason, "\"}"));
  }
  static absl::Status GetRun(const std::shared_ptr<grpc::Channel>& channel) {
    return CallRaw(channel, kGetRun, "").status;
  }
  // A connection that says nothing.
  int Silent() {
    const std::vector<std::string> address = absl::StrSplit(server_->grpc_address(), ':');
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address.at(1), &port));
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    return fd;
  }
};

TEST_F(ConnectionsTest, ACallWithACredentialIsSeenOnItsConnection) {
  const auto channel = WithToken("token-viewer");
  ASSERT_TRUE(GetRun(channel).ok());
  EXPECT_EQ(Metric("connections{state=\"authenticated\"}"), 1);
  EXPECT_EQ(Metric("connections{state=\"anonymous\"}"), 0);
  const auto nobody = WithToken("token-nobody");
  EXPECT_EQ(GetRun(nobody).code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Metric("connections{state=\"authenticated\"}"), 1);
  EXPECT_EQ(Metric("connections{state=\"anonymous\"}"), 1);
}

TEST_F(ConnectionsTest, OverIpv6Too) {
  server_ = nullptr;
  listen_ = "[::1]:0";
  Start();
  if (server_ == nullptr) GTEST_SKIP() << "this machine has no ::1";
  EXPECT_TRUE(GetRun(TestChannel(server_->grpc_address())).ok());
  EXPECT_EQ(Metric("connections{state=\"authenticated\"}"), 1);
}

TEST_F(ConnectionsTest, SilentConnectionsEndAndOthersStillCome) {
  connections_.anonymous = 30;
  connections_.anonymous_of_address = 30;
  StartTls();
  std::vector<int> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(Silent());
  EXPECT_TRUE(GetRun(WithToken("token-viewer")).ok());
  char byte;
  for (int i = 0; i < 60; ++i) EXPECT_LE(recv(silent[i], &byte, 1, 0), 0) << i;
  EXPECT_GE(Ended("made_room"), 60);
  for (const int fd : silent) close(fd);
}

TEST_F(ConnectionsTest, WhoShowsNoCredentialIsEndedAfterAWhile) {
  connections_.anonymous_time = absl::Milliseconds(100);
  StartTls();
  const int silent = Silent();
  char byte;
  EXPECT_LE(recv(silent, &byte, 1, 0), 0);
  close(silent);
  EXPECT_GE(Ended("no_credential"), 1);
}

TEST_F(ConnectionsTest, ACredentialHasEightConnections) {
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < 8; ++i) {
    channels.push_back(WithToken("token-viewer"));
    ASSERT_TRUE(GetRun(channels.back()).ok());
  }
  EXPECT_EQ(Ended("newer_of_credential"), 0);
  channels.push_back(WithToken("token-viewer"));
  ASSERT_TRUE(GetRun(channels.back()).ok());
  EXPECT_EQ(Ended("newer_of_credential"), 1);
  EXPECT_EQ(Metric("connections{state=\"authenticated\"}"), 8);
}

TEST_F(ConnectionsTest, ACompressedMessageIsRefusedBeforeItIsInflated) {
  const std::string zeros(400'000, '\0');
  for (const auto& channel : {WithToken("token-viewer"), WithToken("token-nobody")}) {
    for (const auto algorithm : {GRPC_COMPRESS_GZIP, GRPC_COMPRESS_DEFLATE}) {
      for (const std::string path :
           {kGetRun, "/distro.v1.AdminService/CreateRun", "/distro.v1.AggregatorService/Join",
            "/distro.v1.AggregatorService/UploadUpdate", "/grpc.health.v1.Health/Check"}) {
        const RawAnswer answer = CallRaw(channel, path, zeros, {.compression = algorithm});
        EXPECT_EQ(answer.status.code(), absl::StatusCode::kUnimplemented) << path << answer.status;
      }
    }
  }
}

TEST_F(ConnectionsTest, ReflectionIsOff) {
  const RawAnswer answer = CallRaw(WithToken("token-admin"), kReflection, {kListServices, 2});
  EXPECT_EQ(answer.status.code(), absl::StatusCode::kUnimplemented) << answer.status;
}

TEST_F(ConnectionsTest, ReflectionWantsACredential) {
  reflection_ = true;
  StartTls();
  const RawAnswer viewer = CallRaw(WithToken("token-viewer"), kReflection, {kListServices, 2});
  EXPECT_TRUE(viewer.status.ok()) << viewer.status;
  EXPECT_EQ(viewer.messages, 1);
  const RawAnswer nobody = CallRaw(WithToken("token-nobody"), kReflection, {kListServices, 2});
  EXPECT_EQ(nobody.status.code(), absl::StatusCode::kUnauthenticated) << nobody.status;
  EXPECT_EQ(nobody.messages, 0);
  EXPECT_TRUE(GetRun(WithToken("token-viewer")).ok());
}

}  // namespace
}  // namespace distro::testing
