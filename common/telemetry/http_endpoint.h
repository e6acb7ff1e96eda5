// The plain HTTP side of a process: metrics, health, status pages. Meant for the cluster, not for the internet: it
// answers GET only, closes each connection after its answer, and takes no bodies.
//
// Thread-safe. Handlers run on the endpoint's own threads, several at a time.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "prometheus/metric_family.h"

namespace distro {

struct HttpRequest {
  std::string path;
  std::map<std::string, std::string>
      query;  // the first of each name; "?verbose" is {"verbose", ""}
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
  std::map<std::string, std::string> headers = {};  // besides Content-Type and Content-Length
};

struct HttpRoute {
  std::string path;  // matched as a whole; [a-z/.] only
  std::function<HttpResponse(const HttpRequest&)> handler;
};

class HttpEndpoint {
 public:
  // Listens on host:port; port 0 takes a free one. Returns when requests are answered. Unavailable: the port is in use
  // or the address is not of this machine; the message names both.
  static absl::StatusOr<std::unique_ptr<HttpEndpoint>> Start(const std::string& host, int port,
                                                             std::vector<HttpRoute> routes);
  // Waits for handlers that run; a silent client delays it by at most two seconds.
  ~HttpEndpoint();
  HttpEndpoint(const HttpEndpoint&) = delete;
  HttpEndpoint& operator=(const HttpEndpoint&) = delete;

  int port() const { return port_; }

 private:
  struct Server;
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

// GET `path`: the families in the text format.
HttpRoute MetricsRoute(std::string path,
                       std::function<std::vector<prometheus::MetricFamily>()> collect);
// GET /healthz: 200 "ok" while the process lives.
HttpRoute HealthRoute();
// GET /readyz: 200 "ready" or 503 "not ready"; ?verbose adds the checks.
HttpRoute ReadyRoute(std::function<ReadyReport()> report);

}  // namespace distro
