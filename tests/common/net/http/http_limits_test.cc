// http_endpoint.h against hostile clients, over real sockets.
#include <sys/resource.h>
#include <time.h>

#include <atomic>
#include <list>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "common/net/http/http_endpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/net/http/raw_client.h"

namespace distro {
namespace {

using ::testing::HasSubstr;
using testing::RawClient;
using ::testing::StartsWith;

constexpr char kHealth[] = "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr char kLarge[] = "GET /large HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr char kSlow[] = "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr char kBusy[] = "GET /busy HTTP/1.1\r\nHost: a\r\n\r\n";
constexpr size_t kLargeBytes = 16 << 20;  // more than sockets buffer
constexpr int kSmallBuffer = 4096;

// Times so long that no test reaches them by accident.
HttpLimits Patient() { return {.request_time = absl::Minutes(5), .answer_time = absl::Minutes(5)}; }

double ProcessorSeconds(clockid_t clock) {
  timespec used = {};
  clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

// What makes a client slow; nothing is waited for.
void Dawdle(int milliseconds) { poll(nullptr, 0, milliseconds); }

class HttpLimitsTest : public ::testing::Test {
 protected:
  void Start(const HttpLimits& limits) {
    const auto slow = [this](const HttpRequest&) {
      ++running_;
      release_.WaitForNotification();
      return HttpResponse{};
    };
    const auto large = [](const HttpRequest&) {
      return HttpResponse{.body = std::string(kLargeBytes, 'x')};
    };
    const auto busy = [](const HttpRequest&) {
      const double start = ProcessorSeconds(CLOCK_THREAD_CPUTIME_ID);
      while (ProcessorSeconds(CLOCK_THREAD_CPUTIME_ID) < start + 0.02) {
      }
      return HttpResponse{};
    };
    auto endpoint = HttpEndpoint::Start(
        "127.0.0.1", 0, {HealthRoute(), {"/slow", slow}, {"/large", large}, {"/busy", busy}},
        limits);
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    endpoint_ = *std::move(endpoint);
    port_ = endpoint_->port();
  }
  void TearDown() override {
    if (!release_.HasBeenNotified()) release_.Notify();
  }
  std::string Ask(const std::string& request) { return RawClient(port_, request).ReadAll(); }
  void ExpectHealthy() { EXPECT_THAT(Ask(kHealth), StartsWith("HTTP/1.1 200 OK\r\n")); }

  absl::Notification release_;  // of all slow handlers
  std::atomic<int> running_ = 0;
  std::unique_ptr<HttpEndpoint> endpoint_;
  int port_ = 0;
};

TEST_F(HttpLimitsTest, AnswersHealthWhileSlowClientsHoldAllTheirPlaces) {
  HttpLimits limits = Patient();
  limits.connections = 8;
  limits.connections_of_peer = 4;
  Start(limits);
  std::list<RawClient> slow;
  for (const std::string from : {"127.0.0.2", "127.0.0.3", "127.0.0.1"}) {
    for (int i = 0; i < 4; ++i) slow.emplace_back(port_, "GET /healthz HTTP/1.1\r\nA: ", from);
  }
  std::atomic<bool> done = false;
  std::thread drips([&] {
    while (!done) {
      for (RawClient& client : slow) client.Send("x");
      Dawdle(/*milliseconds=*/5);
    }
  });
  for (int i = 0; i < 8; ++i) ExpectHealthy();
  done = true;
  drips.join();
}

TEST_F(HttpLimitsTest, AnswersHealthWhileSlowReadersHoldAllTheirPlaces) {
  HttpLimits limits = Patient();
  limits.connections = 2;
  limits.answer_bytes = 3 * kLargeBytes;
  Start(limits);
  std::list<RawClient> slow;
  for (int i = 0; i < 2; ++i) {
    slow.emplace_back(port_, kLarge, "127.0.0.2", kSmallBuffer);
    EXPECT_THAT(slow.back().ReadSome(16), StartsWith("HTTP/1.1 200 OK"));
  }
  ExpectHealthy();
}

TEST_F(HttpLimitsTest, CapsConnectionsOfOnePeer) {
  HttpLimits limits = Patient();
  limits.connections_of_peer = 2;
  Start(limits);
  RawClient other(port_, "GET /hea", "127.0.0.2");
  RawClient first(port_, "GET /hea");
  RawClient second(port_, "GET /hea");
  RawClient third(port_, "GET /hea");
  EXPECT_EQ(first.ReadAll(), "");
  for (RawClient* client : {&other, &second, &third}) {
    EXPECT_TRUE(client->Send("lthz HTTP/1.1\r\n\r\n"));
    EXPECT_THAT(client->ReadAll(), StartsWith("HTTP/1.1 200 OK\r\n"));
  }
}

TEST_F(HttpLimitsTest, AnswersHealthWhileAllHandlersAreStuckAndTheQueueIsFull) {
  HttpLimits limits = Patient();
  limits.queue = 1;
  Start(limits);
  RawClient first(port_, kSlow);
  RawClient second(port_, kSlow);
  while (running_ < 2) std::this_thread::yield();
  RawClient third(port_, kSlow);
  ExpectHealthy();  // so that the third waits in the queue
  EXPECT_THAT(Ask(kSlow), StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  ExpectHealthy();
  release_.Notify();
  for (RawClient* client : {&first, &second, &third})
    EXPECT_THAT(client->ReadAll(), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpLimitsTest, HandlersTakeNoMoreThanTheirShareOfACore) {
  HttpLimits limits = Patient();
  limits.handler_share = 0.1;
  limits.handler_burst = absl::Milliseconds(10);
  Start(limits);
  const absl::Time start = absl::Now();
  for (int i = 0; i < 3; ++i) EXPECT_THAT(Ask(kBusy), StartsWith("HTTP/1.1 200 OK\r\n"));
  // Two took 40 ms, of which the burst gave 10 and the time has to give the rest before the third.
  EXPECT_GE(absl::Now() - start, absl::Milliseconds(290));
}

TEST_F(HttpLimitsTest, DropsARequestWhoseHandlerTakesTooLong) {
  HttpLimits limits = Patient();
  limits.answer_time = absl::Milliseconds(50);
  Start(limits);
  EXPECT_EQ(Ask(kSlow), "");
  release_.Notify();
  ExpectHealthy();
}

TEST_F(HttpLimitsTest, RefusesABodyUnread) {
  Start(Patient());
  for (const std::string size : {"1", "1073741824"}) {
    EXPECT_THAT(Ask(absl::StrCat("GET /healthz HTTP/1.1\r\nContent-Length: ", size, "\r\n\r\n")),
                StartsWith("HTTP/1.1 413 Payload Too Large\r\n"));
  }
}

TEST_F(HttpLimitsTest, RefusesAChunkedBodyUnread) {
  Start(Patient());
  for (const std::string start : {"", "40000000\r\n"}) {
    EXPECT_THAT(
        Ask(absl::StrCat("GET /healthz HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", start)),
        StartsWith("HTTP/1.1 413 Payload Too Large\r\n"));
  }
}

TEST_F(HttpLimitsTest, StopsReadingFromAClientThatSendsItsRefusedBodyAllTheSame) {
  Start(Patient());
  RawClient client(port_, "POST /healthz HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
  const std::string chunk(1 << 20, 'x');
  int sent = 0;
  while (sent < 1024 && client.Send(chunk)) ++sent;
  EXPECT_LT(sent, 1024);
  ExpectHealthy();
}

TEST_F(HttpLimitsTest, AnswersGetAndHeadOnly) {
  Start(Patient());
  for (const std::string method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "NONSENSE"}) {
    const std::string answer = Ask(method + " /healthz HTTP/1.1\r\nContent-Length: 4\r\n\r\n");
    EXPECT_THAT(answer, StartsWith("HTTP/1.1 405 Method Not Allowed\r\nAllow: GET, HEAD\r\n"));
  }
}

TEST_F(HttpLimitsTest, RefusesWhatIsNoRequest) {
  Start(Patient());
  for (const std::string text :
       {"\x16\x03\x01 hello\r\n\r\n", "GET *  HTTP/1.1\r\n\r\n", "GET healthz HTTP/1.1\r\n\r\n",
        "GET /healthz HTTP/1.1\r\n:\r\n\r\n"})
    EXPECT_THAT(Ask(text), StartsWith("HTTP/1.1 400 Bad Request\r\n")) << text;
}

TEST_F(HttpLimitsTest, RefusesALongHeader) {
  HttpLimits limits = Patient();
  limits.header_bytes = 1000;
  Start(limits);
  const std::string line = "GET /healthz HTTP/1.1\r\nA: ";
  EXPECT_THAT(Ask(line + std::string(900, 'x') + "\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(Ask(line + std::string(1000, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 Request Header Fields Too Large\r\n"));
}

TEST_F(HttpLimitsTest, RefusesHeaderLinesWithoutEnd) {
  Start(Patient());
  RawClient client(port_, "GET /healthz HTTP/1.1\r\n");
  int lines = 0;
  while (lines < (1 << 20) && client.Send("A: b\r\n")) ++lines;
  EXPECT_LT(lines, 1 << 20);
  ExpectHealthy();
}

TEST_F(HttpLimitsTest, ClosesARequestThatDripsItsHeader) {
  HttpLimits limits = Patient();
  limits.request_time = absl::Milliseconds(100);
  Start(limits);
  RawClient client(port_, "GET /healthz HTTP/1.1\r\nA: ");
  int drops = 0;
  while (drops < 4000 && !client.Readable(/*milliseconds=*/5)) {
    client.Send("x");
    ++drops;
  }
  EXPECT_LT(drops, 4000);  // half a header block
  EXPECT_EQ(client.ReadAll(), "");
}

TEST_F(HttpLimitsTest, ClosesAnAnswerThatIsReadInDrops) {
  HttpLimits limits = Patient();
  limits.answer_time = absl::Milliseconds(200);
  Start(limits);
  RawClient client(port_, kLarge, "127.0.0.1", kSmallBuffer);
  size_t bytes = 0;
  for (std::string drop = client.ReadSome(64); !drop.empty(); drop = client.ReadSome(64)) {
    bytes += drop.size();
    Dawdle(/*milliseconds=*/1);
  }
  EXPECT_LT(bytes, kLargeBytes);
}

TEST_F(HttpLimitsTest, DropsOldestSlowReader) {
  HttpLimits limits = Patient();
  limits.answer_bytes = kLargeBytes + kLargeBytes / 2;
  Start(limits);
  RawClient slow(port_, kLarge, "127.0.0.2", kSmallBuffer);
  EXPECT_THAT(slow.ReadSome(16), StartsWith("HTTP/1.1 200 OK"));
  EXPECT_GT(Ask(kLarge).size(), kLargeBytes);
  EXPECT_LT(slow.ReadAll().size(), kLargeBytes);
}

TEST_F(HttpLimitsTest, IgnoresRanges) {
  Start(Patient());
  const std::string answer = Ask("GET /healthz HTTP/1.1\r\nRange: bytes=0-,0-,0-,1-1\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, ::testing::EndsWith("\r\nContent-Length: 3\r\n\r\nok\n"));
}

TEST_F(HttpLimitsTest, GoesOnAcceptingAfterFilesRanOut) {
  Start(Patient());
  RawClient client;
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;  // what is open stays open
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  client.Connect(port_);
  client.Send(kHealth);
  const double start = ProcessorSeconds(CLOCK_PROCESS_CPUTIME_ID);
  EXPECT_FALSE(client.Readable(/*milliseconds=*/200));
  EXPECT_LT(ProcessorSeconds(CLOCK_PROCESS_CPUTIME_ID) - start,
            0.1);  // it waits and does not turn in circles
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(client.ReadAll(), StartsWith("HTTP/1.1 200 OK\r\n"));
}

}  // namespace
}  // namespace distro
