#include "common/net/http/http_endpoint.h"

#include <atomic>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/net/http/http_get.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/net/http/raw_client.h"

namespace distro {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::unique_ptr<HttpEndpoint> Start(std::vector<HttpRoute> routes) {
  auto endpoint = HttpEndpoint::Start("127.0.0.1", 0, std::move(routes));
  EXPECT_TRUE(endpoint.ok()) << endpoint.status();
  return *std::move(endpoint);
}

HttpText Get(const HttpEndpoint& endpoint, const std::string& path) {
  const auto text = HttpGet(absl::StrCat("127.0.0.1:", endpoint.port()), path, absl::Seconds(30),
                            /*max_bytes=*/1 << 20);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : HttpText{};
}

// The whole answer to `request`, as it comes.
std::string Ask(const HttpEndpoint& endpoint, const std::string& request) {
  return testing::RawClient(endpoint.port(), request).ReadAll();
}

TEST(HttpEndpointTest, SaysWhetherItIsHealthyAndReady) {
  std::atomic<bool> ready = true;
  const auto endpoint =
      Start({HealthRoute(), ReadyRoute([&] {
               return ReadyReport{ready, {{"log", true, ""}, {"disk", false, "1 MB left"}}};
             })});
  EXPECT_EQ(Get(*endpoint, "/healthz").body, "ok\n");
  EXPECT_EQ(Get(*endpoint, "/readyz").status, 200);
  EXPECT_EQ(Get(*endpoint, "/readyz").body, "ready\n");
  EXPECT_EQ(Get(*endpoint, "/readyz?verbose").body, "ready\n[+] log\n[-] disk: 1 MB left\n");
  ready = false;
  EXPECT_EQ(Get(*endpoint, "/readyz").status, 503);
  EXPECT_EQ(Get(*endpoint, "/readyz?verbose").body, "not ready\n[+] log\n[-] disk: 1 MB left\n");
}

TEST(HttpEndpointTest, ServesOtherRoutesWithTheirQuery) {
  const auto endpoint =
      Start({{"/", [](const HttpRequest& request) {
                return HttpResponse{201, "text/html", request.path + request.query.at("a")};
              }}});
  const auto answer = Get(*endpoint, "/?a=b%20c&a=d");
  EXPECT_EQ(answer.status, 201);
  EXPECT_EQ(answer.content_type, "text/html");
  EXPECT_EQ(answer.body, "/b c");
  EXPECT_EQ(Get(*endpoint, "/nothing").status, 404);
}

TEST(HttpEndpointTest, SendsAHandlersHeadersAndClosesAfterOneAnswer) {
  const auto endpoint =
      Start({{"/page.css", [](const HttpRequest&) {
                return HttpResponse{.body = "text", .headers = {{"Cache-Control", "no-store"}}};
              }}});
  const std::string request = "GET /page.css HTTP/1.1\r\nHost: a\r\n\r\n";
  EXPECT_EQ(Ask(*endpoint, request + request),
            "HTTP/1.1 200 OK\r\n"
            "Cache-Control: no-store\r\n"
            "Content-Type: text/plain; charset=utf-8\r\n"
            "Connection: close\r\n"
            "Content-Length: 4\r\n\r\ntext");
  EXPECT_EQ(Get(*endpoint, "/pagexcss").status, 404);
}

TEST(HttpEndpointTest, AnswersClientsOfHttp10) {
  const auto endpoint = Start({HealthRoute()});
  EXPECT_THAT(Ask(*endpoint, "GET /healthz HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 200 OK\r\n"));
}

TEST(HttpEndpointTest, HeadHasNoBody) {
  const auto endpoint = Start({HealthRoute()});
  const std::string answer = Ask(*endpoint, "HEAD /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\nContent-Length: 3\r\n\r\n"));
}

TEST(HttpEndpointTest, ListensOnIpv6) {
  const auto endpoint = HttpEndpoint::Start("::1", 0, {HealthRoute()});
  if (!endpoint.ok()) GTEST_SKIP() << "this machine has no IPv6: " << endpoint.status();
  const auto text =
      HttpGet(absl::StrCat("[::1]:", (*endpoint)->port()), "/healthz", absl::Seconds(30), 16);
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(text->body, "ok\n");
}

TEST(HttpEndpointTest, ListensOnBothFamilies) {
  const auto endpoint = HttpEndpoint::Start("::", 0, {HealthRoute()});
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_EQ(Get(**endpoint, "/healthz").status, 200) << "by IPv4";
}

TEST(HttpEndpointTest, NamesThePortThatIsInUse) {
  const auto endpoint = Start({HealthRoute()});
  const auto second = HttpEndpoint::Start("127.0.0.1", endpoint->port(), {HealthRoute()});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(absl::StrCat("127.0.0.1:", endpoint->port())));
  EXPECT_EQ(Get(*endpoint, "/healthz").status, 200);
}

TEST(HttpEndpointTest, NamesAnAddressThatIsNotOfThisMachine) {
  for (const int port : {0, 7701}) {
    const auto endpoint = HttpEndpoint::Start("203.0.113.1", port, {});
    EXPECT_EQ(endpoint.status().code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(endpoint.status().message()), HasSubstr("203.0.113.1"));
  }
}

TEST(HttpEndpointTest, StopsAndFreesItsPort) {
  int port = 0;
  for (int i = 0; i < 20; ++i) {
    auto endpoint = HttpEndpoint::Start("127.0.0.1", port, {HealthRoute()});
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    port = (*endpoint)->port();
    EXPECT_EQ(Get(**endpoint, "/healthz").status, 200);
  }
}

// Starting and stopping at once must neither hang nor race, also without a request in between.
TEST(HttpEndpointTest, StopsRightAfterTheStart) {
  for (int i = 0; i < 50; ++i) Start({HealthRoute()});
}

TEST(HttpEndpointTest, StopsInSpiteOfASilentClient) {
  auto endpoint = Start({HealthRoute()});
  testing::RawClient client(endpoint->port(), "GET /");
  endpoint = nullptr;  // the test's time limit is the expectation
}

TEST(HttpEndpointTest, WaitsAtItsEndForAHandlerThatRuns) {
  absl::Notification runs, may_end;
  std::atomic<bool> has_ended = false;
  auto endpoint = Start({{"/", [&](const HttpRequest&) {
                            runs.Notify();
                            may_end.WaitForNotification();
                            has_ended = true;
                            return HttpResponse{};
                          }}});
  testing::RawClient client(endpoint->port(), "GET / HTTP/1.1\r\n\r\n");
  runs.WaitForNotification();
  std::thread ends([&] {
    endpoint = nullptr;
    EXPECT_TRUE(has_ended);
  });
  EXPECT_EQ(client.ReadAll(), "");  // it is at its end
  may_end.Notify();
  ends.join();
}

TEST(HttpEndpointTest, AnswersManyClientsAtOnce) {
  std::atomic<int> asked = 0;
  const auto endpoint = Start({{"/", [&](const HttpRequest&) {
                                  ++asked;
                                  return HttpResponse{};
                                }}});
  std::vector<std::thread> clients;
  std::atomic<int> answered = 0;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&] {
      for (int j = 0; j < 10; ++j) answered += Get(*endpoint, "/").status == 200;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(asked, 80);
  EXPECT_EQ(answered, 80);
}

}  // namespace
}  // namespace distro
