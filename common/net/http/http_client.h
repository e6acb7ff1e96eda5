// Fetches bytes from one HTTP or HTTPS server, and sends some, over a connection that is kept
// between requests. A response counts only as far as it arrives: whoever needs to know that the
// bytes are right checks them. Connects to the server itself, never through a proxy.
//
//   HttpClient client(*ParseHttpUrl("https://mirror.example"), {.cancelled = stopping});
//   absl::Status status = client.Get("/v1/objects/...", 0, [&](uint64_t offset, auto bytes) {
//     ...
//   });
//
// Not thread-safe. Blocking.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/net/dns/look_up.h"
#include "common/net/http/http_url.h"

namespace distro {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpCall {
  std::string method = "GET";
  std::string path = {};  // what follows the path of the server's URL
  HttpHeaders headers = {};
  uint64_t body_bytes = 0;
  // The bytes of the body from `offset` on, at least one and at most `most`. Called again from 0 on
  // if the request is sent again.
  std::function<absl::StatusOr<std::string>(uint64_t offset, size_t most)> body = nullptr;
};

struct HttpHead {
  int status = 0;
  HttpHeaders headers = {};

  // The value of the first header of that name, in any case; empty: there is none.
  absl::string_view Header(absl::string_view name) const;
};

struct HttpText {
  int status = 0;
  std::string content_type;
  std::string body;
};

struct HttpClientOptions {
  // Longest wait for a connection, and for the next bytes of a request or a response to go.
  absl::Duration patience = absl::Seconds(2);
  // Longest wait for the head of a response and its first byte: a cache may have to fetch first. A
  // transfer also ends where its mean rate is below `least_bytes_per_second` after this time.
  absl::Duration answer_patience = absl::Seconds(10);
  double least_bytes_per_second = 256 << 10;
  // Asked every 50 ms while waiting; empty: never cancelled.
  std::function<bool()> cancelled = nullptr;
  // Finds the addresses of the server's name; empty: the system's resolver.
  HostResolver resolver = nullptr;
};

class HttpClient {
 public:
  // Receives bytes in order, with their offset in the object. A status that is not OK ends the
  // transfer and is returned.
  using Sink = absl::FunctionRef<absl::Status(uint64_t offset, absl::string_view bytes)>;

  // Looks at a response before its body. A status that is not OK is returned, without the body.
  using HeadCheck = absl::FunctionRef<absl::Status(const HttpHead& head)>;

  HttpClient(HttpUrl server, HttpClientOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Sends a request, and again if there was no answer on a kept connection. Unavailable: there was
  // no answer, or the connection ended early; the message names the URL. Cancelled.
  absl::Status Send(const HttpCall& request, HeadCheck check, Sink sink);
  // GET of the server's path followed by `path`, from byte `offset` on; a server that supports no
  // ranges sends the bytes before as well. NotFound: the server answered 404. Unavailable: it did
  // not answer, another status came, or the connection ended early; the message names the URL.
  // Cancelled.
  absl::Status Get(const std::string& path, uint64_t offset, Sink sink);
  // The answer to a GET of the same, whatever its status. Unavailable: there was none, or one with
  // more than `max_bytes`; the message names the URL. Cancelled.
  absl::StatusOr<HttpText> GetText(const std::string& path, size_t max_bytes);

 private:
  class Connection;
  // Calls `use` with a connection, and again with another if the server had closed the first.
  absl::Status Connected(const std::string& path, absl::FunctionRef<absl::Status(Connection&)> use);
  absl::Status TryConnected(absl::FunctionRef<absl::Status(Connection&)> use);

  const HttpUrl server_;
  const HttpClientOptions options_;
  std::optional<LookUp> look_up_;           // the last one, which may still go on
  std::unique_ptr<Connection> connection_;  // null: none is open
};

}  // namespace distro
