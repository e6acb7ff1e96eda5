// The roles allowed to call each method, over TLS, on a whole aggregator.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/file.h"
#include "common/base/reason.h"
#include "common/client/channel.h"
#include "common/client/options/invite.h"
#include "common/net/security/dev_certificates.h"
#include "common/net/security/token.h"
#include "server/auth/tokens/roles.h"
#include "server/auth/tokens/tokens_file.h"
#include "tests/server/service/raw_call.h"
#include "tests/server/service/tls_fixture.h"
#include "tests/testing/troubleshooting_page.h"

namespace distro::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr auto kRefused = absl::StatusCode::kPermissionDenied;

class AuthorizationTest : public TlsServerTest {
 protected:
  std::shared_ptr<grpc::Channel> WithCertificate(const KeyedCertificate& ca,
                                                 const std::string& name, const std::string& role) {
    const auto issued =
        IssueClientCertificate(ca, name, role, {absl::Now() - absl::Hours(1), absl::Hours(9)});
    const std::string file = absl::StrCat("client-", ++certificates_);
    Write(file, issued->cert);
    Write(file + "-key", issued->key);
    ClientTls tls;
    tls.cert = folder_.File(file);
    tls.key = folder_.File(file + "-key");
    return Open(tls);
  }
  // TLS without any credential, which OpenChannel does not offer.
  std::shared_ptr<grpc::Channel> WithNothing() {
    return grpc::CreateChannel(
        server_->grpc_address(),
        grpc::SslCredentials(
            {.pem_root_certs = ca_.cert, .pem_private_key = "", .pem_cert_chain = ""}));
  }

  // What a call with one empty message ends with.
  static absl::Status Call(const std::shared_ptr<grpc::Channel>& channel,
                           absl::string_view full_method, const std::string& metadata = "") {
    const size_t dot = full_method.rfind('.');
    const std::string path =
        absl::StrCat("/", full_method.substr(0, dot), "/", full_method.substr(dot + 1));
    return CallRaw(channel, path, "", {.authorization = metadata}).status;
  }
  // The same, again until it ends well, or not: a changed file takes effect within a second.
  static absl::Status Await(const std::shared_ptr<grpc::Channel>& channel,
                            absl::string_view full_method, bool ok) {
    const absl::Time end = absl::Now() + absl::Minutes(1);
    absl::Status status = Call(channel, full_method);
    while (status.ok() != ok && absl::Now() < end) status = Call(channel, full_method);
    return status;
  }

  int certificates_ = 0;
};

TEST_F(AuthorizationTest, NeedsCredential) {
  for (const server::RpcRule& rule : server::kRpcRules) {
    for (const auto& channel : {WithNothing(), WithToken("token-nobody")}) {
      const absl::Status status = Call(channel, rule.method);
      if (absl::IsUnimplemented(status)) continue;
      EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated) << rule.method << status;
      EXPECT_EQ(ReasonOf(status), "unauthenticated") << rule.method;
    }
  }
}

// `channel_of` gives a role its channel.
template <typename ChannelOf>
void ExpectTheTable(const ChannelOf& channel_of,
                    absl::Status (*call)(const std::shared_ptr<grpc::Channel>&,
                                         absl::string_view)) {
  for (size_t r = 0; r < server::kRoles.size(); ++r) {
    const std::shared_ptr<grpc::Channel> channel = channel_of(server::kRoles[r]);
    for (const server::RpcRule& rule : server::kRpcRules) {
      const absl::Status status = call(channel, rule.method);
      if (absl::IsUnimplemented(status)) continue;
      const bool refused = status.code() == kRefused && ReasonOf(status) == "role";
      EXPECT_EQ(refused, !rule.allowed[r])
          << rule.method << " by " << server::RoleName(server::kRoles[r]) << ": " << status;
      EXPECT_NE(status.code(), absl::StatusCode::kUnauthenticated) << rule.method;
      EXPECT_NE(status.code(), absl::StatusCode::kUnavailable) << rule.method << status;
    }
  }
}

TEST_F(AuthorizationTest, FollowsRoleOfToken) {
  ExpectTheTable(
      [this](server::Role role) {
        return WithToken(absl::StrCat("token-", server::RoleName(role)));
      },
      [](const std::shared_ptr<grpc::Channel>& channel, absl::string_view method) {
        return Call(channel, method);
      });
}

TEST_F(AuthorizationTest, FollowsRoleOfCertificate) {
  ExpectTheTable(
      [this](server::Role role) {
        return WithCertificate(ca_, "c1", std::string(server::RoleName(role)));
      },
      [](const std::shared_ptr<grpc::Channel>& channel, absl::string_view method) {
        return Call(channel, method);
      });
}

TEST_F(AuthorizationTest, RefusesCertificatesWithoutNameOrRoleAndOfAnotherCa) {
  const std::string method = "distro.v1.AggregatorService.Heartbeat";
  for (const auto& [name, role] :
       {std::pair("w1", "boss"), std::pair("Not A Name", "worker"), std::pair("w1", "")}) {
    const absl::Status status = Call(WithCertificate(ca_, name, role), method);
    EXPECT_EQ(ReasonOf(status), "unauthenticated") << name << role << status;
  }
  const KeyedCertificate other = *MakeCa({absl::Now() - absl::Hours(1), absl::Hours(9)});
  EXPECT_EQ(Call(WithCertificate(other, "w1", "worker"), method).code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(AuthorizationTest, RefusesWhatIsNoBearerToken) {
  const std::string method = "distro.v1.AggregatorService.Heartbeat";
  for (const std::string& header :
       {std::string("Bearer "), std::string(43, 'a'), "Basic " + std::string(43, 'a'),
        "Bearer " + std::string(43, 'a'), "Bearer " + std::string(44, 'a')}) {
    EXPECT_EQ(ReasonOf(Call(WithNothing(), method, header)), "unauthenticated") << header;
  }
}

// A certificate is no way around a token that was revoked.
TEST_F(AuthorizationTest, PrefersTokenToCertificate) {
  const auto channel = WithCertificate(ca_, "c1", "admin");
  const std::string method = "distro.v1.AdminService.GetRun";
  EXPECT_TRUE(Call(channel, method).ok());
  EXPECT_EQ(ReasonOf(Call(channel, method, "Bearer " + std::string(43, 'a'))), "unauthenticated");
}

TEST_F(AuthorizationTest, RefusesMetadataAbove8KiB) {
  EXPECT_EQ(Call(WithToken("token-viewer"), "distro.v1.AdminService.GetRun").code(),
            absl::StatusCode::kOk);
  EXPECT_EQ(Call(WithNothing(), "distro.v1.AdminService.GetRun", std::string(9000, 'a')).code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(AuthorizationTest, RefusesPlaintext) {
  EXPECT_EQ(Call(TestChannel(server_->grpc_address()), "distro.v1.AdminService.GetRun").code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(AuthorizationTest, BindsWorkerToItsName) {
  for (const auto& channel :
       {WithToken("token-worker"), WithCertificate(ca_, "token-worker", "worker")}) {
    TestWorker other(channel, "somebody-else", 7);
    std::vector<absl::Status> statuses = {other.Join(), other.Leave(), other.Upload(0, {}).status,
                                          other.Subscribe(&layout_)->Next().status()};
    v1::HeartbeatRequest heartbeat;
    *heartbeat.mutable_worker() = other.identity();
    v1::HeartbeatResponse answer;
    grpc::ClientContext context;
    statuses.push_back(FromGrpcStatus(other.stub()->Heartbeat(&context, heartbeat, &answer)));
    for (const absl::Status& status : statuses) {
      EXPECT_EQ(status.code(), kRefused) << status;
      EXPECT_EQ(ReasonOf(status), "wrong_name") << status;
      EXPECT_THAT(status.message(), HasSubstr("token-worker"));
    }
    TestWorker own(channel, "token-worker", 7);
    EXPECT_TRUE(own.Join().ok());
  }
}

TEST_F(AuthorizationTest, LetsArchiverFollow) {
  TestWorker archiver(WithToken("token-archiver"), "token-archiver", 7);
  EXPECT_EQ(ReasonOf(archiver.Subscribe(&layout_)->Next().status()), "wrong_name");
  v1::SubscribeRoundsRequest request;
  request.set_run_id("another");
  TestSubscription nameless(archiver.stub(), request, &layout_);
  const absl::Status status = nameless.Next().status();
  EXPECT_NE(status.code(), kRefused) << status;  // there is no such run
}

TEST_F(AuthorizationTest, RefusesRevokedToken) {
  const auto channel = WithToken("token-viewer");
  const std::string method = "distro.v1.AdminService.GetRun";
  EXPECT_TRUE(Call(channel, method).ok());
  const auto tokens = ReadFile(folder_.File("tokens"));
  Write("tokens", *server::WithoutName(*tokens, "token-viewer"));
  EXPECT_EQ(ReasonOf(Await(channel, method, /*ok=*/false)), "unauthenticated");
}

TEST_F(AuthorizationTest, TakesNewTokenOnOldChannel) {
  const auto channel = WithToken("token-viewer");
  const std::string method = "distro.v1.AdminService.GetRun";
  const std::string token = *NewToken();
  Write("tokens", server::TokensLine("token-viewer", server::Role::kViewer, token));
  EXPECT_EQ(ReasonOf(Await(channel, method, /*ok=*/false)), "unauthenticated");
  Write("token-viewer", token);
  EXPECT_TRUE(Await(channel, method, /*ok=*/true).ok());
}

// Calls do not read the file.
TEST_F(AuthorizationTest, KeepsTokenWithoutFile) {
  const auto channel = WithToken("token-viewer");
  std::filesystem::remove(folder_.File("token-viewer"));
  EXPECT_TRUE(Call(channel, "distro.v1.AdminService.GetRun").ok());
}

// One file has CA and token; when it is written anew, calls have the new token.
TEST_F(AuthorizationTest, TakesInviteUntilItExpires) {
  const std::string method = "distro.v1.AdminService.GetRun";
  const absl::Time until =
      absl::FromUnixSeconds(absl::ToUnixSeconds(clock_.WallNow())) + absl::Seconds(100);
  Invite invite = {.aggregator = server_->grpc_address(),
                   .name = "guest",
                   .role = "viewer",
                   .token = *NewToken(),
                   .expires = until,
                   .ca = ca_.cert};
  Write("guest.invite", InviteText(invite));
  const auto know = [&] {
    Write("tokens", server::TokensLine("guest", server::Role::kViewer, invite.token, until));
  };
  know();
  ChannelOptions options = {.aggregator = "", .tls = {.invite = folder_.File("guest.invite")}};
  ASSERT_TRUE(TakeInvite(&options, clock_.WallNow()).ok());
  const auto channel = OpenChannel(options);
  ASSERT_TRUE(channel.ok()) << channel.status();
  EXPECT_TRUE(Await(*channel, method, /*ok=*/true).ok());
  invite.token = *NewToken();
  know();
  EXPECT_EQ(ReasonOf(Await(*channel, method, /*ok=*/false)), "unauthenticated");
  Write("guest.invite", InviteText(invite));
  EXPECT_TRUE(Await(*channel, method, /*ok=*/true).ok());
  clock_.Advance(absl::Seconds(101));
  const absl::Status expired = Call(*channel, method);
  EXPECT_EQ(ReasonOf(expired), "unauthenticated");
  EXPECT_THAT(std::string(expired.message()), HasSubstr("the token of guest expired at "));
  EXPECT_TRUE(TroubleshootingPageHas(absl::StrReplaceAll(expired.message(), {{"guest", "NAME"}}),
                                     "HOST:PORT", "/nowhere/"))
      << expired;
}

// When the disk fails a worker's status names an operation, not a path.
TEST_F(AuthorizationTest, StatusesHoldNoPaths) {
  TestWorker worker(WithToken("token-worker"), "token-worker", 7);
  ASSERT_TRUE(worker.Join().ok());
  std::filesystem::remove_all(folder_.File("data/snapshots"));
  v1::DownloadSnapshotRequest request;
  request.set_sha256(worker.joined().snapshot().sha256());
  grpc::ClientContext context;
  const auto reader = worker.stub()->DownloadSnapshot(&context, request);
  v1::DownloadSnapshotResponse frame;
  EXPECT_FALSE(reader->Read(&frame));
  const absl::Status status = FromGrpcStatus(reader->Finish());
  EXPECT_EQ(ReasonOf(status), "disk") << status;
  EXPECT_THAT(status.message(), HasSubstr("read the snapshot"));
  EXPECT_THAT(status.message(), Not(HasSubstr("/")));
}

// A record is removed while the aggregator runs. Readers of the log get that status, without a
// path.
TEST_F(AuthorizationTest, HidesPathsFromSubscriber) {
  Start();
  {
    auto a = NewActive("a");
    auto rounds = a->Subscribe(&layout_);
    ASSERT_TRUE(rounds->NextOpen().ok());
    ASSERT_TRUE(a->Upload(0, Payloads(0, 1)).status.ok());
    ASSERT_TRUE(rounds->NextCommit().ok());
  }
  Start();  // memory has no frames of that round any more
  std::filesystem::remove(folder_.File("data/rounds/0000000000.record"));
  auto b = NewWorker("b");
  ASSERT_TRUE(b->Join().ok());
  const absl::Status status = b->Subscribe(&layout_)->NextCommit().status();
  EXPECT_EQ(ReasonOf(status), "damaged") << status;
  EXPECT_THAT(status.message(), HasSubstr("round 0"));
  EXPECT_THAT(status.message(), Not(HasSubstr("/")));
}

}  // namespace
}  // namespace distro::testing
