// The probe against peers below gRPC, each a socket on loopback: none at all, one that drops, is
// silent, hangs up, or says something else.
#include "common/client/probe/probe.h"

#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "common/base/file.h"
#include "gtest/gtest.h"
#include "tests/testing/loopback.h"
#include "tests/testing/scratch_folder.h"
#include "tests/testing/troubleshooting_page.h"

namespace distro {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// A socket on a free port of loopback, which listens where `backlog` is not below 0.
class Listener {
 public:
  explicit Listener(int backlog = 16) {
    if (backlog >= 0) {
      EXPECT_EQ(listen(port_.fd(), backlog), 0);
    }
  }

  int Accept() const { return accept4(port_.fd(), nullptr, nullptr, SOCK_CLOEXEC); }
  // A connection that is not waited for.
  int Connect() const {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const sockaddr_in to = testing::Loopback(port_.number());
    (void)connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
    return fd;
  }
  std::string address() const { return port_.address(); }

 private:
  const testing::HeldPort port_;
};

class ProbeTest : public ::testing::Test {
 protected:
  ProbeTest() {
    EXPECT_TRUE(WriteFileAtomically(folder_.File("token"), std::string(43, 'a') + "\n").ok());
  }

  ConnectionLook Look(const std::string& address, bool insecure,
                      absl::Duration timeout = absl::Seconds(10)) {
    ProbeOptions options;
    options.channel.aggregator = address;
    options.channel.insecure = insecure;
    if (!insecure) options.channel.tls.token_file = folder_.File("token");
    options.step_timeout = timeout;
    const auto look = Probe(options);
    EXPECT_TRUE(look.ok()) << look.status();
    return look.value_or(ConnectionLook());
  }
  // Expects that the probe ended with a fault of `kind` in `step`, with a message of
  // docs/troubleshooting.md.
  void ExpectFault(const ConnectionLook& look, absl::string_view step, FaultKind kind,
                   absl::string_view what) {
    ASSERT_TRUE(look.fault) << look.address;
    EXPECT_EQ(look.fault->kind, kind) << look.fault->what;
    EXPECT_THAT(look.fault->what, AllOf(HasSubstr(look.address), HasSubstr(std::string(what))));
    const absl::Status status = StatusOf(*look.fault);
    EXPECT_TRUE(testing::TroubleshootingPageHas(status.message(), look.address, folder_.File("")))
        << status.message();
    ASSERT_FALSE(look.steps.empty());
    EXPECT_EQ(look.steps.back().name, step);
    for (const ProbeStep& each : look.steps) EXPECT_EQ(each.ok, &each != &look.steps.back());
  }
  // The diagnosis of a server that sends `bytes` to every client, and closes when the client does.
  ConnectionLook LookAtWhoSays(const std::string& bytes, bool insecure) {
    Listener listener;
    std::thread server([&] {
      for (int fd = listener.Accept(); fd >= 0; fd = listener.Accept()) {
        (void)send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        shutdown(fd, SHUT_WR);
        char drop[4096];
        while (recv(fd, drop, sizeof(drop), 0) > 0) continue;
        close(fd);
        if (done_) break;
      }
    });
    const ConnectionLook look = Look(listener.address(), insecure);
    done_ = true;
    close(listener.Connect());  // wakes accept
    server.join();
    return look;
  }

  testing::ScratchFolder folder_;
  std::atomic<bool> done_{false};
};

TEST_F(ProbeTest, ReportsUnresolvedName) {
  const ConnectionLook look = Look("aggregator.invalid:7700", true);
  ExpectFault(look, "resolve", FaultKind::kUnresolved, "the name aggregator.invalid");
  EXPECT_TRUE(look.ip_addresses.empty());
}

TEST_F(ProbeTest, ReportsClosedPort) {
  const Listener listener(/*backlog=*/-1);
  const ConnectionLook look = Look(listener.address(), true);
  ExpectFault(look, "connect", FaultKind::kUnreachable, "127.0.0.1: connection refused");
  EXPECT_THAT(look.ip_addresses, ::testing::ElementsAre("127.0.0.1"));
}

// A full queue drops connection requests, as a firewall does.
TEST_F(ProbeTest, ReportsDroppingHost) {
  Listener listener(/*backlog=*/0);
  std::vector<int> waiting;
  const auto close_all = absl::MakeCleanup([&] {
    for (const int fd : waiting) close(fd);
  });
  for (int i = 0; i < 4; ++i) waiting.push_back(listener.Connect());
  const ConnectionLook look = Look(listener.address(), true, absl::Milliseconds(50));
  ExpectFault(look, "connect", FaultKind::kUnreachable, "no answer within 50ms");
  EXPECT_THAT(look.fault->remedy, HasSubstr("firewall"));
}

TEST_F(ProbeTest, ReportsSilentListener) {
  const Listener listener;  // the kernel takes connections, and nobody reads
  ExpectFault(Look(listener.address(), true, absl::Milliseconds(300)), "http2",
              FaultKind::kNoAnswer, "no answer within 300ms");
  ExpectFault(Look(listener.address(), false, absl::Milliseconds(300)), "tls", FaultKind::kNoAnswer,
              "no answer within 300ms");
}

TEST_F(ProbeTest, ReportsHangUp) {
  ExpectFault(LookAtWhoSays("", true), "http2", FaultKind::kNoAnswer, "closed");
  done_ = false;
  ExpectFault(LookAtWhoSays("", false), "tls", FaultKind::kNoAnswer, "closed");
}

TEST_F(ProbeTest, ReportsOtherProtocol) {
  for (const bool insecure : {true, false}) {
    done_ = false;
    ExpectFault(LookAtWhoSays("SSH-2.0-OpenSSH_9.2\r\n", insecure), insecure ? "http2" : "tls",
                FaultKind::kOtherService, "SSH-2.0-OpenSSH_9.2");
  }
}

TEST_F(ProbeTest, ReportsWebServer) {
  for (const bool insecure : {true, false}) {
    done_ = false;
    ExpectFault(LookAtWhoSays("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n", insecure),
                insecure ? "http2" : "tls", FaultKind::kOtherService, "HTTP/1");
  }
}

// The header of a TLS record that announces more bytes than any client reads, and then zeros.
TEST_F(ProbeTest, StopsReadingEndlessAnswer) {
  std::string bytes = "\x16\x03\x03";
  bytes.append(4 << 20, '\0');
  ExpectFault(LookAtWhoSays(bytes, false), "tls", FaultKind::kNoAnswer, "");
}

TEST_F(ProbeTest, StopsWhenNotWanted) {
  const Listener listener;
  int asked = 0;
  ProbeOptions options;
  options.channel = {.aggregator = listener.address(), .insecure = true};
  options.step_timeout = absl::Hours(1);
  options.wanted = [&] { return ++asked < 5; };
  EXPECT_TRUE(absl::IsCancelled(Probe(options).status()));
}

TEST_F(ProbeTest, RefusesWrongFlags) {
  ProbeOptions options;
  options.channel = {.aggregator = "nowhere", .insecure = true};
  EXPECT_TRUE(absl::IsInvalidArgument(Probe(options).status()));
  options.channel = {.aggregator = "host:7700", .tls = {.cert = "cert"}};
  EXPECT_TRUE(absl::IsInvalidArgument(Probe(options).status())) << "no key";
  options.channel.tls = {.ca = folder_.File("absent"), .token_file = folder_.File("token")};
  EXPECT_THAT(std::string(Probe(options).status().message()), HasSubstr("absent"));
}

TEST_F(ProbeTest, NeedsNoCredential) {
  ProbeOptions options;
  options.channel = {.aggregator = Listener(-1).address(), .insecure = false};
  const auto look = Probe(options);
  ASSERT_TRUE(look.ok()) << look.status();
  ExpectFault(*look, "connect", FaultKind::kUnreachable, "connection refused");
}

}  // namespace
}  // namespace distro
