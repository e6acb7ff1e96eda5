// The message of a client that cannot reach a whole aggregator, and that docs/troubleshooting.md
// has the same text.
#include <gmock/gmock.h>

#include <cstdlib>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/client/diagnosis.h"
#include "tests/server/service/tls_fixture.h"
#include "tests/testing/loopback.h"
#include "tests/testing/troubleshooting_page.h"

namespace distro::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr absl::Duration kHour = absl::Hours(1);

// Also by the aggregator's clock, which stands still in 2023.
Validity Until(absl::Time end) {
  const absl::Time begin = absl::FromUnixSeconds(1'600'000'000);
  return {begin, end - begin};
}

class ConnectionFaultsTest : public TlsServerTest {
 protected:
  ConnectionFaultsTest() {
    Write("other-ca", MakeCa({absl::Now() - kHour, 9 * kHour})->cert);
    channel_.aggregator = server_->grpc_address();
    channel_.tls.ca = folder_.File("ca");
    channel_.tls.token_file = folder_.File("token-worker");
  }

  // The aggregator's certificate from now on.
  void Serve(const std::string& host, const Validity& validity) {
    const auto issued = IssueServerCertificate(ca_, {host}, validity);
    Write("cert", issued->cert);
    Write("key", issued->key);
    StartTls();
    channel_.aggregator = server_->grpc_address();
  }
  void Plaintext() {
    Start();
    channel_.aggregator = server_->grpc_address();
  }
  void Insecure() {
    channel_.insecure = true;
    channel_.tls = {};
  }

  ConnectionLook Look() {
    const auto look = Diagnose({.channel = channel_, .clock = calendar_});
    EXPECT_TRUE(look.ok()) << look.status();
    return look.value_or(ConnectionLook());
  }
  // Runs the probe; expects `kind` in `step`, with a message of the page.
  ConnectionLook ExpectFault(absl::string_view step, FaultKind kind) {
    ConnectionLook look = Look();
    EXPECT_TRUE(look.fault);
    if (!look.fault) return look;
    EXPECT_EQ(look.fault->kind, kind) << look.fault->what;
    EXPECT_EQ(look.steps.back().name, step);
    EXPECT_FALSE(look.steps.back().ok);
    const absl::Status status = StatusOf(*look.fault);
    EXPECT_TRUE(TroubleshootingPageHas(status.message(), look.address, folder_.File("")))
        << status.message();
    return look;
  }

  ChannelOptions channel_;
  const Clock* calendar_ = Clock::Real();
};

TEST_F(ConnectionFaultsTest, WhereAllIsWellEveryStepSaysWhatItSaw) {
  const ConnectionLook look = Look();
  EXPECT_FALSE(look.fault) << look.fault->what;
  std::vector<std::string> steps;
  for (const ProbeStep& step : look.steps) {
    steps.push_back(step.name);
    EXPECT_TRUE(step.ok) << step.name;
    EXPECT_FALSE(step.seen.empty()) << step.name;
  }
  EXPECT_THAT(steps, ElementsAre("resolve", "connect", "tls", "http2", "health"));
  ASSERT_TRUE(look.certificate);
  EXPECT_EQ(look.certificate->issuer, "distro development CA");
  EXPECT_THAT(look.certificate->names, ElementsAre("127.0.0.1"));
  EXPECT_GT(look.certificate->not_after, absl::Now());
  EXPECT_LT(look.certificate->not_before, absl::Now());
  EXPECT_EQ(look.alpn, "h2");
  EXPECT_EQ(look.health, "SERVING");
}

TEST_F(ConnectionFaultsTest, PlaintextHasNoTlsStep) {
  Plaintext();
  Insecure();
  const ConnectionLook look = Look();
  EXPECT_FALSE(look.fault);
  EXPECT_EQ(look.steps.size(), 4u);
  EXPECT_EQ(look.tls_version, "");
}

TEST_F(ConnectionFaultsTest, ShowsDrainingAggregator) {
  server_->Drain();
  const ConnectionLook look = Look();
  EXPECT_FALSE(look.fault);
  EXPECT_EQ(look.health, "NOT_SERVING");
}

TEST_F(ConnectionFaultsTest, ShowsNoCa) {
  channel_.tls.ca = "";
  const ConnectionLook look = ExpectFault("tls", FaultKind::kUntrusted);
  EXPECT_EQ(look.certificate->issuer, "distro development CA") << "shown all the same";
}

TEST_F(ConnectionFaultsTest, ShowsOtherCa) {
  channel_.tls.ca = folder_.File("other-ca");
  ExpectFault("tls", FaultKind::kUntrusted);
}

TEST_F(ConnectionFaultsTest, ShowsMisnamedCa) {
  Write("other-ca",
        IssueServerCertificate(ca_, {"elsewhere.example"}, {absl::Now() - kHour, 9 * kHour})->cert);
  channel_.tls.ca = folder_.File("other-ca");
  const ConnectionLook look = Look();
  ASSERT_TRUE(look.fault);
  EXPECT_EQ(look.fault->kind, FaultKind::kUntrusted);
  EXPECT_THAT(look.fault->what, HasSubstr("other-ca holds only elsewhere.example"));
}

TEST_F(ConnectionFaultsTest, ShowsNameMismatch) {
  channel_.tls.server_name = "aggregator.example";
  ExpectFault("tls", FaultKind::kNameMismatch);
  Serve("localhost", Until(absl::Now() + 8 * kHour));
  channel_.tls.server_name = "";
  EXPECT_THAT(ExpectFault("tls", FaultKind::kNameMismatch).fault->what,
              HasSubstr("for localhost, not for 127.0.0.1"));
}

TEST_F(ConnectionFaultsTest, ShowsExpiredCertificate) {
  Serve("127.0.0.1", Until(absl::Now() - kHour));
  ExpectFault("tls", FaultKind::kCertificateDates);
}

TEST_F(ConnectionFaultsTest, ShowsClockBehind) {
  FakeClock behind;
  behind.Advance(-24 * 365 * kHour);
  calendar_ = &behind;
  const ConnectionLook look = ExpectFault("tls", FaultKind::kCertificateDates);
  EXPECT_THAT(look.fault->what, HasSubstr("the clock of this machine says 2022-11-14"));
}

TEST_F(ConnectionFaultsTest, ShowsClockAhead) {
  Serve("127.0.0.1", {absl::FromUnixSeconds(1'600'000'000), 24 * 3650 * kHour});
  clock_.Advance(24 * 3650 * kHour);
  calendar_ = &clock_;
  ExpectFault("tls", FaultKind::kCertificateDates);
}

TEST_F(ConnectionFaultsTest, NamesAllFaultsOfCertificate) {
  Serve("localhost", Until(absl::Now() - kHour));
  channel_.tls.ca = folder_.File("other-ca");
  const ConnectionLook look = Look();
  ASSERT_TRUE(look.fault);
  EXPECT_EQ(look.fault->kind, FaultKind::kUntrusted);
  EXPECT_THAT(look.fault->what, AllOf(HasSubstr("another CA of this name"),
                                      HasSubstr("not for 127.0.0.1"), HasSubstr("ended")));
}

TEST_F(ConnectionFaultsTest, ShowsForeignOwnCertificate) {
  const auto stranger = MakeCa({absl::Now() - kHour, 9 * kHour});
  const auto own =
      IssueClientCertificate(*stranger, "w1", "worker", {absl::Now() - kHour, 9 * kHour});
  Write("own", own->cert);
  Write("own-key", own->key);
  channel_.tls = {
      .ca = folder_.File("ca"), .cert = folder_.File("own"), .key = folder_.File("own-key")};
  const ConnectionLook look = ExpectFault("http2", FaultKind::kOwnCertificate);
  EXPECT_EQ(ReasonOf(StatusOf(*look.fault)), "unauthenticated");
}

TEST_F(ConnectionFaultsTest, TlsAgainstAPlaintextServer) {
  Plaintext();
  ExpectFault("tls", FaultKind::kTlsMismatch);
}

TEST_F(ConnectionFaultsTest, PlaintextAgainstATlsServer) {
  Insecure();
  ExpectFault("http2", FaultKind::kTlsMismatch);
}

TEST_F(ConnectionFaultsTest, ShowsHttpPort) {
  channel_.aggregator = server_->http_address();
  ExpectFault("tls", FaultKind::kOtherService);
  Insecure();
  ExpectFault("http2", FaultKind::kOtherService);
}

TEST_F(ConnectionFaultsTest, ShowsClosedPort) {
  server_ = nullptr;
  ExpectFault("connect", FaultKind::kUnreachable);
}

// A gRPC server without any service.
TEST_F(ConnectionFaultsTest, ShowsOtherServer) {
  grpc::EnableDefaultHealthCheckService(false);
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  const std::unique_ptr<grpc::Server> other = builder.BuildAndStart();
  channel_.aggregator = absl::StrCat("127.0.0.1:", port);
  Insecure();
  ExpectFault("health", FaultKind::kOtherService);
}

// The probe goes past the proxy, calls do not.
TEST_F(ConnectionFaultsTest, ShowsDeadProxy) {
  const HeldPort nobody;
  setenv("https_proxy", absl::StrCat("http://user:secret@", nobody.address()).c_str(), 1);
  const auto restore = absl::MakeCleanup([] {
    unsetenv("https_proxy");
    unsetenv("NO_PROXY");
  });
  const ConnectionLook look = ExpectFault("health", FaultKind::kNoAnswer);
  EXPECT_THAT(look.fault->what, AllOf(HasSubstr("https_proxy"), Not(HasSubstr("secret"))));
  setenv("NO_PROXY", "other.example,127.0.0.0/8", 1);
  EXPECT_FALSE(Look().fault) << "the channel goes past it, too";
}

// There is no way but through the proxy, which is dead.
TEST_F(ConnectionFaultsTest, NamesBothWaysWhenNeitherIsOpen) {
  const HeldPort nobody;
  server_ = nullptr;
  setenv("https_proxy", std::string(nobody.address()).c_str(), 1);
  const auto restore = absl::MakeCleanup([] { unsetenv("https_proxy"); });
  const ConnectionLook look = Look();
  ASSERT_TRUE(look.fault);
  EXPECT_EQ(look.fault->kind, FaultKind::kNoAnswer);
  EXPECT_THAT(look.fault->what,
              AllOf(HasSubstr("that https_proxy names"), HasSubstr("connection refused")));
  EXPECT_THAT(look.fault->remedy, HasSubstr("check whether the proxy runs"));
  EXPECT_EQ(look.steps.back().name, "health");
}

TEST_F(ConnectionFaultsTest, RefusesProxyThatCallsWouldIgnore) {
  setenv("https_proxy", "https://proxy.example:3128", 1);
  const auto restore = absl::MakeCleanup([] { unsetenv("https_proxy"); });
  const absl::Status refused = Diagnose({.channel = channel_}).status();
  EXPECT_TRUE(absl::IsInvalidArgument(refused)) << refused;
}

TEST_F(ConnectionFaultsTest, ExplainsFailedCall) {
  const absl::Status failed = absl::UnavailableError("failed to connect");
  EXPECT_EQ(Explain(failed, {.channel = channel_}), failed) << "the way is free";
  channel_.tls.ca = "";
  EXPECT_EQ(ReasonOf(Explain(failed, {.channel = channel_})), "untrusted");
  const absl::Status refused =
      ErrorWithReason(absl::StatusCode::kPermissionDenied, "role", "viewers may not");
  EXPECT_EQ(Explain(refused, {.channel = channel_}), refused) << "an aggregator said so";
}

// A probe can be stopped while a step waits.
TEST_F(ConnectionFaultsTest, StopsWhenNotWanted) {
  const auto look = Diagnose({.channel = channel_, .wanted = [] { return false; }});
  EXPECT_TRUE(absl::IsCancelled(look.status())) << look.status();
}

}  // namespace
}  // namespace distro::testing
