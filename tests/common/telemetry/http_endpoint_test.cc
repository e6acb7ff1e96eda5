#include "common/telemetry/http_endpoint.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/telemetry/metrics.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "httplib.h"

namespace distro {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<HttpEndpoint> Start(std::vector<HttpRoute> routes) {
  auto endpoint = HttpEndpoint::Start("127.0.0.1", 0, std::move(routes));
  EXPECT_TRUE(endpoint.ok()) << endpoint.status();
  return *std::move(endpoint);
}

httplib::Result Get(const HttpEndpoint& endpoint, const std::string& path) {
  return httplib::Client("127.0.0.1", endpoint.port()).Get(path);
}

TEST(HttpEndpointTest, ServesMetrics) {
  MetricsRegistry registry("distro_test_");
  registry.AddGauge("round", "The round.")->Set(7);
  const auto endpoint = Start({MetricsRoute("/metrics", [&] { return registry.Collect(); })});
  ASSERT_GT(endpoint->port(), 0);
  const auto answer = Get(*endpoint, "/metrics");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(answer->body, HasSubstr("# TYPE distro_test_round gauge\ndistro_test_round 7\n"));
}

TEST(HttpEndpointTest, SaysWhetherItIsHealthyAndReady) {
  std::atomic<bool> ready = true;
  const auto endpoint =
      Start({HealthRoute(), ReadyRoute([&] {
               return ReadyReport{ready, {{"log", true, ""}, {"disk", false, "1 MB left"}}};
             })});
  EXPECT_EQ(Get(*endpoint, "/healthz")->body, "ok\n");
  EXPECT_EQ(Get(*endpoint, "/readyz")->status, 200);
  EXPECT_EQ(Get(*endpoint, "/readyz")->body, "ready\n");
  EXPECT_EQ(Get(*endpoint, "/readyz?verbose")->body, "ready\n[+] log\n[-] disk: 1 MB left\n");
  ready = false;
  EXPECT_EQ(Get(*endpoint, "/readyz")->status, 503);
  EXPECT_EQ(Get(*endpoint, "/readyz?verbose")->body, "not ready\n[+] log\n[-] disk: 1 MB left\n");
}

TEST(HttpEndpointTest, ServesOtherRoutesWithTheirQuery) {
  const auto endpoint =
      Start({{"/", [](const HttpRequest& request) {
                return HttpResponse{201, "text/html", request.path + request.query.at("a")};
              }}});
  const auto answer = Get(*endpoint, "/?a=b%20c&a=d");
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 201);
  EXPECT_EQ(answer->get_header_value("Content-Type"), "text/html");
  EXPECT_EQ(answer->body, "/b c");
  EXPECT_EQ(Get(*endpoint, "/nothing")->status, 404);
}

TEST(HttpEndpointTest, SendsAHandlersHeadersAndTakesADotAsADot) {
  const auto endpoint = Start({{"/page.css", [](const HttpRequest&) {
                                  return HttpResponse{.headers = {{"Cache-Control", "no-store"}}};
                                }}});
  EXPECT_EQ(Get(*endpoint, "/page.css")->get_header_value("Cache-Control"), "no-store");
  EXPECT_EQ(Get(*endpoint, "/pagexcss")->status, 404);
}

TEST(HttpEndpointTest, AnswersGetOnly) {
  const auto endpoint = Start({HealthRoute()});
  httplib::Client client("127.0.0.1", endpoint->port());
  EXPECT_EQ(client.Post("/healthz", "x", "text/plain")->status, 404);
  const auto large = client.Post("/healthz", std::string(1 << 20, 'x'), "text/plain");
  if (large) {
    EXPECT_GE(large->status, 400);
  }
  EXPECT_EQ(Get(*endpoint, "/healthz")->status, 200);
}

TEST(HttpEndpointTest, NamesThePortThatIsInUse) {
  const auto endpoint = Start({HealthRoute()});
  const auto second = HttpEndpoint::Start("127.0.0.1", endpoint->port(), {HealthRoute()});
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(absl::StrCat("127.0.0.1:", endpoint->port())));
  EXPECT_EQ(Get(*endpoint, "/healthz")->status, 200);
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
    EXPECT_EQ(Get(**endpoint, "/healthz")->status, 200);
  }
}

// Starting and stopping at once must neither hang nor race, also without a request in between.
TEST(HttpEndpointTest, StopsRightAfterTheStart) {
  for (int i = 0; i < 50; ++i) Start({HealthRoute()});
}

TEST(HttpEndpointTest, StopsInSpiteOfASilentClient) {
  auto endpoint = Start({HealthRoute()});
  const int client = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(endpoint->port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(connect(client, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ASSERT_EQ(send(client, "GET /", 5, 0), 5);
  endpoint = nullptr;  // the test's time limit is the expectation
  close(client);
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
      for (int j = 0; j < 10; ++j) answered += Get(*endpoint, "/")->status == 200;
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(asked, 80);
  EXPECT_EQ(answered, 80);
}

}  // namespace
}  // namespace distro
