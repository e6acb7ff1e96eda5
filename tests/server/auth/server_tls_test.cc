#include "server/auth/server_tls.h"

#include <gmock/gmock.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/client/channel.h"
#include "common/net/security/dev_certificates.h"
#include "common/net/security/token.h"
#include "tests/server/auth/tokens/recording_observer.h"
#include "tests/testing/fake_clock.h"
#include "tests/testing/scratch_folder.h"

namespace distro::server {
namespace {

// A port with ServerTls' credentials, and without services.
class ServerTlsTest : public ::testing::Test {
 protected:
  ServerTlsTest() {
    ca_ = *MakeCa(Forever());
    Write("token", *NewToken());
    Write("ca", ca_.cert);
    WriteServer(ca_, absl::Hours(1));
  }
  ~ServerTlsTest() override {
    if (server_ != nullptr) server_->Shutdown();
  }

  // By the clock, which stands still in 2023, and by the clients' real one.
  static Validity Forever() { return Until(absl::Now() + absl::Hours(1000)); }
  static Validity Until(absl::Time end) {
    const absl::Time begin = testing::FakeClock().WallNow() - absl::Hours(1);
    return {begin, end - begin};
  }

  void Write(const std::string& name, absl::string_view bytes) {
    ASSERT_TRUE(WriteFileAtomically(folder_.File(name), bytes).ok());
  }
  void WriteServer(const KeyedCertificate& ca, absl::Duration valid) {
    expiry_ = absl::FromUnixSeconds(absl::ToUnixSeconds(absl::Now() + valid));
    const auto issued = IssueServerCertificate(ca, {"127.0.0.1"}, Until(expiry_));
    ASSERT_TRUE(issued.ok()) << issued.status();
    Write("cert", issued->cert);
    Write("key", issued->key);
  }

  void Start() {
    auto tls = ServerTls::Open(
        {.ca = folder_.File("ca"), .cert = folder_.File("cert"), .key = folder_.File("key")},
        &clock_, &log_, &observer_);
    ASSERT_TRUE(tls.ok()) << tls.status();
    tls_ = *std::move(tls);
    grpc::ServerBuilder builder;
    int port = 0;
    builder.RegisterCallbackGenericService(&nothing_);
    builder.AddListeningPort("127.0.0.1:0", tls_->Credentials(), &port);
    server_ = builder.BuildAndStart();
    ASSERT_NE(port, 0);
    address_ = absl::StrCat("127.0.0.1:", port);
  }

  // Whether a new client that trusts `ca` can connect.
  bool Connects(const KeyedCertificate& ca) {
    Write("client-ca", ca.cert);
    ClientTls tls;
    tls.ca = folder_.File("client-ca");
    tls.token_file = folder_.File("token");
    const auto channel = OpenChannel({.aggregator = address_, .tls = tls});
    EXPECT_TRUE(channel.ok()) << channel.status();
    grpc_connectivity_state state = (*channel)->GetState(true);
    while (state != GRPC_CHANNEL_READY && state != GRPC_CHANNEL_TRANSIENT_FAILURE) {
      (*channel)->WaitForStateChange(state,
                                     std::chrono::system_clock::now() + std::chrono::seconds(30));
      state = (*channel)->GetState(true);
    }
    return state == GRPC_CHANNEL_READY;
  }

  testing::ScratchFolder folder_;
  testing::FakeClock clock_;
  std::string logged_;
  Log log_{LogLevel::kInfo, Clock::Real(),
           [this](absl::string_view l) { absl::StrAppend(&logged_, l); }};
  testing::RecordingObserver observer_;
  KeyedCertificate ca_;
  absl::Time expiry_;
  std::unique_ptr<ServerTls> tls_;
  grpc::CallbackGenericService nothing_;
  std::unique_ptr<grpc::Server> server_;
  std::string address_;
};

TEST_F(ServerTlsTest, ServesThoseWhoBelieveItsCa) {
  Start();
  EXPECT_TRUE(Connects(ca_));
  EXPECT_FALSE(Connects(*MakeCa(Forever())));
}

TEST_F(ServerTlsTest, ServesANewCertificateWithoutARestart) {
  Start();
  EXPECT_TRUE(Connects(ca_));
  const KeyedCertificate next = *MakeCa(Forever());
  WriteServer(next, absl::Hours(2));
  ASSERT_TRUE(observer_.Await("certificate ok"));
  EXPECT_TRUE(Connects(next));
  EXPECT_FALSE(Connects(ca_));
}

TEST_F(ServerTlsTest, GoesOnWithTheOldCertificateUntilKeyAndCertificateFit) {
  Start();
  const KeyedCertificate next = *MakeCa(Forever());
  const auto issued = IssueServerCertificate(next, {"127.0.0.1"}, Forever());
  Write("cert", issued->cert);
  ASSERT_TRUE(observer_.Await("certificate error"));
  EXPECT_TRUE(Connects(ca_));
  EXPECT_FALSE(Connects(next));
  EXPECT_THAT(logged_, ::testing::HasSubstr("is not the key of the certificate"));
  EXPECT_THAT(logged_, ::testing::Not(::testing::HasSubstr("PRIVATE")));
  Write("key", issued->key);
  ASSERT_TRUE(observer_.Await("certificate ok"));
  EXPECT_TRUE(Connects(next));
}

TEST_F(ServerTlsTest, KnowsWhenTheCertificateInUseEnds) {
  Start();
  EXPECT_EQ(tls_->expiry(), expiry_);
  WriteServer(ca_, absl::Hours(2));
  ASSERT_TRUE(observer_.Await("certificate ok"));
  EXPECT_EQ(tls_->expiry(), expiry_);
}

TEST_F(ServerTlsTest, RefusesACertificateThatHasEndedOrNotBegunByItsClock) {
  Start();
  EXPECT_EQ(tls_->CheckDates(), absl::OkStatus());
  const auto open = [this] {
    return ServerTls::Open({folder_.File("ca"), folder_.File("cert"), folder_.File("key")}, &clock_,
                           &log_, &observer_)
        .status();
  };
  clock_.Advance(absl::Hours(24 * 365 * 10));
  for (const absl::Status& status : {open(), tls_->CheckDates()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()),
                ::testing::AllOf(::testing::HasSubstr("/cert: the certificate, or the one behind"),
                                 ::testing::HasSubstr(" ended 20"),
                                 ::testing::HasSubstr("renew the certificate, or set the clock")));
  }
  clock_.Advance(-absl::Hours(24 * 365 * 20));
  EXPECT_THAT(std::string(open().message()), ::testing::HasSubstr(" begins 2023-11-14"));
}

TEST_F(ServerTlsTest, GoesOnWithTheOldCertificateInsteadOfOneThatHasEnded) {
  Start();
  const absl::Time first = expiry_;
  const auto ended = IssueServerCertificate(ca_, {"127.0.0.1"},
                                            {clock_.WallNow() - absl::Hours(9), absl::Hours(8)});
  Write("key", ended->key);  // first: with it alone the files do not fit
  ASSERT_TRUE(observer_.Await("certificate error"));
  Write("cert", ended->cert);
  ASSERT_TRUE(observer_.Await("certificate error", 2));
  EXPECT_EQ(tls_->expiry(), first);
  EXPECT_TRUE(Connects(ca_));
  EXPECT_THAT(observer_.reloads(), ::testing::Each("certificate error"));
}

TEST_F(ServerTlsTest, NamesTheFileThatCannotBeUsed) {
  const auto open = [this](const char* ca, const char* cert, const char* key) {
    return ServerTls::Open({folder_.File(ca), folder_.File(cert), folder_.File(key)}, &clock_,
                           &log_, &observer_)
        .status();
  };
  EXPECT_EQ(open("ca", "none", "key").code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(open("token", "cert", "key").message(), ::testing::HasSubstr("token: holds no CA"));
  EXPECT_THAT(open("ca", "token", "key").message(), ::testing::HasSubstr("token: holds no cert"));
  EXPECT_THAT(open("ca", "cert", "token").message(), ::testing::HasSubstr("token: holds no priv"));
  EXPECT_THAT(open("ca", "ca", "key").message(), ::testing::HasSubstr("is not the key"));
}

}  // namespace
}  // namespace distro::server
