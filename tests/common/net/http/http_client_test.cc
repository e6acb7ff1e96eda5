#include "common/net/http/http_client.h"

#include <atomic>
#include <cstdlib>
#include <memory>
#include <thread>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "common/net/http/http_endpoint.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/common/net/http/scripted_server.h"

namespace distro {
namespace {

using ::distro::testing::ScriptedServer;
using Answers = ScriptedServer::Answers;
using Script = ScriptedServer::Script;
using ::testing::HasSubstr;

HttpUrl UrlOf(int port) { return {.host = "127.0.0.1", .port = port, .path = "/at"}; }

// What a GET has given: "OFFSET:BYTES", pieces joined.
struct Got {
  absl::Status status;
  uint64_t offset = UINT64_MAX;
  std::string bytes;
};

Got Get(HttpClient* client, uint64_t offset = 0) {
  Got got;
  got.status = client->Get("/one", offset, [&](uint64_t at, absl::string_view piece) {
    if (got.bytes.empty()) got.offset = at;
    EXPECT_EQ(at, got.offset + got.bytes.size());
    got.bytes.append(piece.data(), piece.size());
    return absl::OkStatus();
  });
  return got;
}

constexpr char kOk[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

TEST(HttpClientTest, KeepsTheConnection) {
  ScriptedServer server(Script{Answers{kOk, kOk}, Answers{kOk}});
  HttpClient client(UrlOf(server.port()), {});
  for (int i = 0; i < 2; ++i) {
    const Got got = Get(&client);
    EXPECT_TRUE(got.status.ok()) << got.status;
    EXPECT_EQ(got.bytes, "hello");
  }
  EXPECT_EQ(server.connections(), 1);
  EXPECT_THAT(server.request(0), HasSubstr("GET /at/one HTTP/1.1\r\n"));
  EXPECT_THAT(server.request(0), HasSubstr(absl::StrCat("Host: 127.0.0.1:", server.port())));
  // The server has closed the connection meanwhile.
  EXPECT_EQ(Get(&client).bytes, "hello");
  EXPECT_EQ(server.connections(), 2);
}

TEST(HttpClientTest, OpensAnotherConnectionWhereTheServerClosesIt) {
  const std::string closing =
      "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello";
  ScriptedServer server(Script{Answers{closing}, Answers{closing}});
  HttpClient client(UrlOf(server.port()), {});
  for (int i = 0; i < 2; ++i) EXPECT_EQ(Get(&client).bytes, "hello");
  EXPECT_EQ(server.connections(), 2);
}

TEST(HttpClientTest, AsksForTheRest) {
  ScriptedServer server(
      Script{Answers{"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 3-4/5\r\n"
                     "Content-Length: 2\r\n\r\nlo"}});
  HttpClient client(UrlOf(server.port()), {});
  const Got got = Get(&client, 3);
  EXPECT_TRUE(got.status.ok()) << got.status;
  EXPECT_EQ(got.offset, 3u);
  EXPECT_EQ(got.bytes, "lo");
  EXPECT_THAT(server.request(0), HasSubstr("Range: bytes=3-\r\n"));
}

TEST(HttpClientTest, TakesAllFromAServerWithoutRanges) {
  ScriptedServer server(Script{Answers{kOk}});
  HttpClient client(UrlOf(server.port()), {});
  const Got got = Get(&client, 3);
  EXPECT_EQ(got.offset, 0u);
  EXPECT_EQ(got.bytes, "hello");
}

TEST(HttpClientTest, TakesChunks) {
  ScriptedServer server(
      {{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"}});
  HttpClient client(UrlOf(server.port()), {});
  EXPECT_EQ(Get(&client).bytes, "hello");
}

TEST(HttpClientTest, NamesTheUrlInEveryFailure) {
  struct Case {
    std::string answer;
    absl::StatusCode code;
    std::string message;
  };
  const absl::StatusCode unavailable = absl::StatusCode::kUnavailable;
  for (const Case& expected : std::vector<Case>{
           {"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", absl::StatusCode::kNotFound,
            "404"},
           {"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", unavailable,
            "status 302"},
           {"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 1-4/5\r\nContent-Length: "
            "4\r\n\r\nello",
            unavailable, "another range"},
           {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", unavailable, "partial message"},
           {"SSH-2.0-OpenSSH\r\n\r\n", unavailable, "bad version"},
           {absl::StrCat("HTTP/1.1 200 OK\r\nX: ", std::string(20000, 'x'), "\r\n\r\n"),
            unavailable, "header"},
           {absl::StrCat("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;",
                         std::string(1 << 20, 'x')),
            unavailable, "buffer"},
           {"", unavailable, "end of stream"}}) {
    ScriptedServer server(Script{Answers{expected.answer}});
    HttpClient client(UrlOf(server.port()), {});
    const absl::Status status = Get(&client).status;
    EXPECT_EQ(status.code(), expected.code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(expected.message));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("http://127.0.0.1:", server.port(), "/at/one: ")));
  }
}

TEST(HttpClientTest, GivesUpASilentServer) {
  ScriptedServer server(
      Script{Answers{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "stays"}});
  HttpClient client(UrlOf(server.port()), {.patience = absl::Milliseconds(100)});
  const Got got = Get(&client);
  EXPECT_EQ(got.status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(got.status.message()), HasSubstr("no answer within 100ms"));
  EXPECT_EQ(got.bytes, "hel");
}

// What was not sent is given up with the connection: no answer is awaited.
TEST(HttpClientTest, GivesUpAServerThatReadsNoBody) {
  ScriptedServer server(Script{Answers{"stays"}});
  HttpClient client(UrlOf(server.port()), {.patience = absl::Milliseconds(100),
                                           .answer_patience = absl::InfiniteDuration()});
  const HttpCall call{
      .method = "PUT", .path = "/one", .body_bytes = 1 << 30, .body = [](uint64_t, size_t most) {
        return std::string(most, 'x');
      }};
  const absl::Status status = client.Send(
      call, [](const HttpHead&) { return absl::OkStatus(); },
      [](uint64_t, absl::string_view) { return absl::OkStatus(); });
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
}

TEST(HttpClientTest, TakesAnAnswerThatComesBeforeTheBodyIsRead) {
  ScriptedServer server(Script{Answers{"HTTP/1.1 412 No\r\nContent-Length: 0\r\n\r\n"}});
  HttpClient client(UrlOf(server.port()), {});
  const HttpCall call{
      .method = "PUT", .path = "/one", .body_bytes = 5, .body = [](uint64_t, size_t) {
        return std::string("hello");
      }};
  int code = 0;
  const absl::Status status = client.Send(
      call,
      [&](const HttpHead& head) {
        code = head.status;
        return absl::OkStatus();
      },
      [](uint64_t, absl::string_view) { return absl::OkStatus(); });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(code, 412);
  EXPECT_THAT(server.request(0), HasSubstr("Content-Length: 5\r\n"));
}

TEST(HttpClientTest, RefusesToConnectToNobody) {
  int port = 0;
  {
    const ScriptedServer server(Script{});
    port = server.port();
  }
  HttpClient client(UrlOf(port), {});
  EXPECT_EQ(Get(&client).status.code(), absl::StatusCode::kUnavailable);
}

TEST(HttpClientTest, NamesTheProxyItDoesNotUse) {
  setenv("HTTPS_PROXY", "http://proxy.example:3128", 1);
  const auto restore = absl::MakeCleanup([] { unsetenv("HTTPS_PROXY"); });
  HttpClient client({.host = "mirror.example", .port = 80},
                    {.resolver = [](auto...) { return absl::UnavailableError("no such name"); }});
  EXPECT_THAT(std::string(Get(&client).status.message()),
              HasSubstr("no such name; HTTPS_PROXY is set, and not used here"));
}

TEST(HttpClientTest, ConnectsToTheFirstAddressThatAnswers) {
  ScriptedServer server(Script{Answers{kOk}});
  HttpClient client({.host = "mirror.example", .port = server.port()},
                    {.resolver = [](const std::string& host, int port) {
                      EXPECT_EQ(host, "mirror.example");
                      auto found = *LookUp("::1", port).result();
                      found.push_back(LookUp("127.0.0.1", port).result()->front());
                      return found;
                    }});
  EXPECT_EQ(Get(&client).bytes, "hello");
}

// A resolver that waits for a DNS server which is silent.
class SilentResolver {
 public:
  ~SilentResolver() { state_->released.Notify(); }

  HostResolver resolver() const {
    return [state = state_](auto...) {
      ++state->asked;
      state->released.WaitForNotification();
      return absl::UnavailableError("late");
    };
  }
  // Waits until it was asked.
  int asked() const {
    while (state_->asked == 0) std::this_thread::yield();
    return state_->asked;
  }

 private:
  struct State {
    std::atomic<int> asked = 0;
    absl::Notification released;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();  // outlived by a look-up
};

TEST(HttpClientTest, GivesUpASilentResolver) {
  const SilentResolver silent;
  HttpClient client({.host = "mirror.example", .port = 80},
                    {.patience = absl::Milliseconds(100), .resolver = silent.resolver()});
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = Get(&client).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr("no answer within 100ms"));
  }
  EXPECT_EQ(silent.asked(), 1) << "a look-up that goes on is waited for again";
}

TEST(HttpClientTest, StopsALookUpWhenItIsCancelled) {
  const SilentResolver silent;
  HttpClient client({.host = "mirror.example", .port = 80},
                    {.patience = absl::InfiniteDuration(),
                     .cancelled = [&] { return silent.asked() > 0; },
                     .resolver = silent.resolver()});
  EXPECT_EQ(Get(&client).status.code(), absl::StatusCode::kCancelled);
}

TEST(HttpClientTest, EndsWithTheStatusOfTheSink) {
  ScriptedServer server(Script{Answers{kOk}, Answers{kOk}});
  HttpClient client(UrlOf(server.port()), {});
  EXPECT_EQ(client.Get("/", 0, [](auto...) { return absl::DataLossError("disk"); }).code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(Get(&client).bytes, "hello") << "over another connection";
}

TEST(HttpClientTest, StopsWhenItIsCancelled) {
  ScriptedServer server(
      Script{Answers{"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", "stays"}});
  std::atomic<bool> cancelled = false;
  HttpClient client(UrlOf(server.port()), {.patience = absl::InfiniteDuration(),
                                           .cancelled = [&] { return cancelled.load(); }});
  const absl::Status status = client.Get("/", 0, [&](auto...) {
    cancelled = true;
    return absl::OkStatus();
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kCancelled);
}

TEST(HttpClientTest, FetchesWhatTheEndpointServes) {
  const auto endpoint = *HttpEndpoint::Start(
      "127.0.0.1", 0,
      {{.path = "/at/",
        .handler =
            [](const HttpRequest&) { return HttpResponse{.body = std::string(1 << 20, 'x')}; },
        .prefix = true}});
  HttpClient client(UrlOf(endpoint->port()), {});
  const Got got = Get(&client);
  EXPECT_TRUE(got.status.ok()) << got.status;
  EXPECT_EQ(got.bytes.size(), 1u << 20);
}

}  // namespace
}  // namespace distro
