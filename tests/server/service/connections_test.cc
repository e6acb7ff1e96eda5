// What happens below the handlers: connections without a credential, of one credential, compressed
// messages, reflection. Over real sockets and gRPC, on a whole aggregator.
#include <sys/socket.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/net/http/http_get.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/service/raw_call.h"
#include "tests/server/service/tls_fixture.h"
#include "tests/testing/loopback.h"

namespace distro::testing {
namespace {

using ::testing::HasSubstr;

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
  int Port() {
    const std::vector<std::string> address = absl::StrSplit(server_->grpc_address(), ':');
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(address.at(1), &port));
    return port;
  }
};

TEST_F(ConnectionsTest, AuthenticatesByCall) {
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
  const auto channel = TestChannel(server_->grpc_address());
  EXPECT_TRUE(GetRun(channel).ok());
  EXPECT_EQ(Metric("connections{state=\"authenticated\"}"), 1);
}

TEST_F(ConnectionsTest, SilentConnectionsEndAndOthersStillCome) {
  connections_.anonymous = 30;
  connections_.anonymous_of_address = 30;
  connections_.address_burst = connections_.anonymous_burst = 16 << 20;
  StartTls();
  std::vector<LoopbackClient> silent(100);
  for (LoopbackClient& client : silent) ASSERT_TRUE(client.Connect(Port()));
  EXPECT_TRUE(GetRun(WithToken("token-viewer")).ok());
  for (int i = 0; i < 60; ++i) EXPECT_TRUE(silent[i].SeesTheEnd()) << i;
  EXPECT_GE(Ended("made_room"), 60);
}

TEST_F(ConnectionsTest, EndsWithoutCredential) {
  connections_.anonymous_time = absl::Milliseconds(100);
  StartTls();
  LoopbackClient silent;
  ASSERT_TRUE(silent.Connect(Port()));
  EXPECT_TRUE(silent.SeesTheEnd());
  EXPECT_GE(Ended("no_credential"), 1);
}

TEST_F(ConnectionsTest, EndsProcessWithListeningSocket) {
  const auto ready = [this] {
    return HttpGet(server_->http_address(), "/readyz?verbose", absl::Seconds(30), 1 << 20)->body;
  };
  EXPECT_THAT(ready(), HasSubstr("[+] accepting"));
  ASSERT_EQ(shutdown(ListeningSocketOf(Port()), SHUT_RDWR), 0);
  while (ready().find("[-] accepting") == std::string::npos) std::this_thread::yield();
  EXPECT_THAT(ready(), HasSubstr("not ready"));
  server_ = nullptr;  // joins who tells
  EXPECT_EQ(fatal_.code(), absl::StatusCode::kInternal);
}

TEST_F(ConnectionsTest, AllowsEightPerCredential) {
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

TEST_F(ConnectionsTest, RefusesCompressedMessage) {
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

TEST_F(ConnectionsTest, AnybodyMayAskForHealthOnceButNotWatchIt) {
  const std::string check = "/grpc.health.v1.Health/Check";
  EXPECT_TRUE(CallRaw(WithToken("token-nobody"), check, "").status.ok());
  EXPECT_EQ(CallRaw(WithToken("token-nobody"), "/grpc.health.v1.Health/Watch", "").status.code(),
            absl::StatusCode::kUnauthenticated);
}

TEST_F(ConnectionsTest, CallsThatAreRefusedEndTheirConnection) {
  const auto nobody = WithToken("token-nobody");
  for (int i = 0; i < 16; ++i)
    EXPECT_EQ(GetRun(nobody).code(), absl::StatusCode::kUnauthenticated) << i;
  EXPECT_EQ(Ended("calls"), 0);
  (void)GetRun(nobody);  // may be ended before its answer
  EXPECT_EQ(Ended("calls"), 1);
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
