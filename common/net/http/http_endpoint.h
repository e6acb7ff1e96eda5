// A plain HTTP server for metrics, health, status pages and objects. For use inside a cluster, not
// on the internet. It serves GET and HEAD, reads no bodies, and closes each connection after its
// response. HttpLimits bounds what clients can use (docs/metrics.md, "Limits of the HTTP port").
//
//   auto endpoint = HttpEndpoint::Start("127.0.0.1", 7701, {HealthRoute(), ReadyRoute(report)});
//
// Thread-safe. One thread does all I/O and reads HttpContent; two others run the handlers, except
// those of routes with `at_once`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/net/http/http_target.h"

namespace distro {

// The bytes of a large response, which are read while they are sent.
class HttpContent {
 public:
  virtual ~HttpContent() = default;
  virtual uint64_t bytes() const = 0;
  // Requires a range within bytes(). May wait for a disk. An error ends the connection before the
  // end of the response.
  virtual absl::StatusOr<std::string> Read(uint64_t offset, uint64_t size) const = 0;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
  std::map<std::string, std::string> headers = {};  // besides Content-Type and Content-Length
  // Instead of `body`, with status 200. A request for a range of it is answered with 206 or 416,
  // and one that has the ETag of `headers` with 304.
  std::shared_ptr<const HttpContent> content = nullptr;
};

struct HttpRoute {
  std::string path;  // exact match, or with `prefix` the beginning
  std::function<HttpResponse(const HttpRequest&)> handler;
  // Runs on the I/O thread, even if all handler threads are busy: it must not block.
  bool at_once = false;
  bool prefix = false;
};

struct HttpLimits {
  size_t header_bytes = 8 << 10;  // the request line and the headers
  // Limit of each of two phases: from connecting to the end of the headers, and from there until
  // the client has read the response and closed. Progress does not extend it, except from piece to
  // piece of an HttpContent (256 KiB).
  absl::Duration request_time = absl::Seconds(5);
  absl::Duration answer_time = absl::Seconds(10);
  // Open connections in total, and per address (IPv6: per /64). Beyond these the oldest is closed.
  size_t connections = 64;
  size_t connections_of_peer = 16;
  size_t answer_bytes = 32 << 20;  // of unsent responses; beyond it the oldest connection is closed
  size_t queue = 32;               // waiting requests, served round-robin by address; beyond it 503
  // CPU time of handlers: the sustained share of one core, and the burst before it applies.
  double handler_share = 0.05;
  absl::Duration handler_burst = absl::Seconds(2);
};

class HttpEndpoint {
 public:
  // Listens on host:port; port 0 takes a free port. When it returns, requests are served.
  // Unavailable: the port is in use or the address is not of this machine (the message names both),
  // or threads or file descriptors are exhausted.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Start(const std::string& host, int port,
                                                             std::vector<HttpRoute> routes,
                                                             const HttpLimits& limits = {});
  // Waits for running handlers, not for clients.
  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  int port() const { return port_; }

 private:
  class Server;
  HttpEndpoint(std::unique_ptr<Server> server, int port);

  const std::unique_ptr<Server> server_;
  const int port_;
  std::thread thread_;
};

// The content of /readyz: whether the process accepts work, and one line per check.
struct ReadyReport {
  struct Check {
    std::string name;
    bool ok = true;
    std::string detail;  // human-readable, one line; may be empty
  };
  bool ready = true;  // may be true although a check is not ok
  std::vector<Check> checks;
};

// GET /healthz: 200 "ok" while the process runs; with `at_once`.
HttpRoute HealthRoute();
// GET /readyz: 200 "ready" or 503 "not ready"; ?verbose adds the checks. With `at_once`: `report`
// must not block.
HttpRoute ReadyRoute(std::function<ReadyReport()> report);

}  // namespace distro
