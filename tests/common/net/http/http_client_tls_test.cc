// HTTPS. A program of its own, because the environment names the CAs.
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>

#include "boost/asio/buffer.hpp"
#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/tcp.hpp"
#include "boost/asio/read_until.hpp"
#include "boost/asio/ssl/context.hpp"
#include "boost/asio/ssl/stream.hpp"
#include "boost/asio/write.hpp"
#include "common/base/clock.h"
#include "common/net/http/http_client.h"
#include "common/net/security/dev_certificates.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/testing/scratch_folder.h"

namespace distro {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Answers one request on one connection.
class TlsServer {
 public:
  explicit TlsServer(const KeyedCertificate& certificate) {
    tls_.use_certificate_chain(asio::buffer(certificate.cert));
    tls_.use_private_key(asio::buffer(certificate.key), asio::ssl::context::pem);
    thread_ = std::thread([this] { Serve(); });
  }
  ~TlsServer() {
    shutdown(acceptor_.native_handle(), SHUT_RDWR);
    thread_.join();
  }
  TlsServer(const TlsServer&) = delete;

  int port() const { return acceptor_.local_endpoint().port(); }

 private:
  void Serve() {
    asio::ssl::stream<tcp::socket> stream(io_, tls_);
    error_code error;
    acceptor_.accept(stream.next_layer(), error);
    if (!error) stream.handshake(asio::ssl::stream_base::server, error);
    std::string head;
    if (!error) asio::read_until(stream, asio::dynamic_buffer(head), "\r\n\r\n", error);
    const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    if (!error) asio::write(stream, asio::buffer(answer), error);
  }

  asio::io_context io_;
  asio::ssl::context tls_{asio::ssl::context::tls_server};
  tcp::acceptor acceptor_{io_, {asio::ip::address_v4::loopback(), 0}};
  std::thread thread_;
};

// A CA that the client trusts.
class HttpClientTlsTest : public ::testing::Test {
 protected:
  HttpClientTlsTest() {
    const std::string file = folder_.File("ca.pem");
    std::ofstream(file) << ca_.cert;
    setenv("SSL_CERT_FILE", file.c_str(), 1);
  }
  ~HttpClientTlsTest() override { unsetenv("SSL_CERT_FILE"); }

  // The answer of a server whose certificate begins `from` from now and is valid for an hour.
  absl::StatusOr<HttpText> Get(absl::Duration from) {
    TlsServer server(*IssueServerCertificate(ca_, {"127.0.0.1"},
                                             {.from = now_ + from, .valid = absl::Hours(1)}));
    HttpClient client({.tls = true, .host = "127.0.0.1", .port = server.port()}, {});
    return client.GetText("/", 100);
  }

  const absl::Time now_ = Clock::Real()->WallNow();
  const KeyedCertificate ca_ = *MakeCa({.from = now_ - absl::Hours(24), .valid = absl::Hours(48)});
  const testing::ScratchFolder folder_;
};

TEST_F(HttpClientTlsTest, TakesACertificateOfACaOfTheSystem) {
  const auto text = Get(-absl::Minutes(30));
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->body, "hello");
}

TEST_F(HttpClientTlsTest, NamesTheClockWhereACertificateIsOutOfDate) {
  const std::string clock = ", and the clock of this machine says 20";
  const absl::Status early = Get(absl::Hours(2)).status();
  EXPECT_EQ(early.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(early.message()), HasSubstr("certificate is not yet valid" + clock));
  const absl::Status late = Get(-absl::Hours(2)).status();
  EXPECT_EQ(late.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(late.message()),
              AllOf(HasSubstr("certificate has expired" + clock),
                    HasSubstr("set the clock of this machine if it is wrong")));
}

TEST_F(HttpClientTlsTest, NamesNoClockWhereTheCaIsUnknown) {
  unsetenv("SSL_CERT_FILE");
  const absl::Status status = Get(-absl::Minutes(30)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("certificate verify failed"), Not(HasSubstr("clock"))));
}

}  // namespace
}  // namespace distro
