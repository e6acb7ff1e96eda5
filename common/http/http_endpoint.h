// The plain HTTP side of a process: metrics, health, status pages. Meant for the cluster, not for
// the internet. It answers GET and HEAD, reads no bodies, knows no ranges, closes each connection
// after its answer, and is held to HttpLimits by whoever connects (docs/metrics.md, "Limits of the
// HTTP port").
//
// Thread-safe. One thread of the endpoint's own does all I/O; handlers run on two others, at most
// two at a time, but for those of routes that are answered at once.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/http/http_target.h"

namespace distro {

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
  std::map<std::string, std::string> headers = {};  // besides Content-Type and Content-Length
};

struct HttpRoute {
  std::string path;  // matched as a whole
  std::function<HttpResponse(const HttpRequest&)> handler;
  // On the I/O thread, whatever the other handlers do: it must not wait for anything.
  bool at_once = false;
};

struct HttpLimits {
  size_t header_bytes = 8 << 10;  // the request line and the headers
  // In all, not since the last byte: from the connection to the end of the headers, and from there
  // until the client has the whole answer and has closed.
  absl::Duration request_time = absl::Seconds(5);
  absl::Duration answer_time = absl::Seconds(10);
  // Connections at one time, and those of one address (IPv6: of its first 64 bits). Beyond them the
  // oldest makes room.
  size_t connections = 64;
  size_t connections_of_peer = 16;
  size_t answer_bytes =
      32 << 20;       // of answers that clients have not taken yet; the oldest makes room
  size_t queue = 32;  // requests that wait for a handler, addresses in turns; beyond it 503
  // Processor time of handlers: of one core for as long as somebody asks, and what may be used
  // before that counts.
  double handler_share = 0.05;
  absl::Duration handler_burst = absl::Seconds(2);
};

class HttpEndpoint {
 public:
  // Listens on host:port; port 0 takes a free one. Returns when requests are answered. Unavailable:
  // the port is in use or the address is not of this machine, the message names both; or threads or
  // files are exhausted.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Start(const std::string& host, int port,
                                                             std::vector<HttpRoute> routes,
                                                             const HttpLimits& limits = {});
  // Waits for handlers that run, not for clients.
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

// What /readyz says: whether to send work here, and one line a check.
struct ReadyReport {
  struct Check {
    std::string name;
    bool ok = true;
    std::string detail;  // for people, one line; may be empty
  };
  bool ready = true;  // a check that is not ok need not make the process unready
  std::vector<Check> checks;
};

// GET /healthz: 200 "ok" while the process lives; answered at once.
HttpRoute HealthRoute();
// GET /readyz: 200 "ready" or 503 "not ready"; ?verbose adds the checks. Answered at once: `report`
// must be quick.
HttpRoute ReadyRoute(std::function<ReadyReport()> report);

}  // namespace distro
