#include "common/telemetry/http_endpoint.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "httplib.h"

namespace distro {
namespace {

constexpr int kThreads = 4;
constexpr size_t kMaxBodyBytes = 4096;

// The library's default sets SO_REUSEPORT, with which two processes share a port without an error.
void ReuseAddressOnly(socket_t socket) {
  const int yes = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
}

void Configure(httplib::Server& server) {
  server.set_socket_options(ReuseAddressOnly);
  server.new_task_queue = [] { return new httplib::ThreadPool(kThreads); };
  server.set_keep_alive_max_count(1);
  server.set_keep_alive_timeout(1);
  server.set_read_timeout(1);
  server.set_write_timeout(1);
  server.set_payload_max_length(kMaxBodyBytes);
}

void AddRoute(httplib::Server& server, HttpRoute route) {
  const std::string pattern =
      absl::StrReplaceAll(route.path, {{".", "\\."}});  // a regular expression
  server.Get(pattern, [handler = std::move(route.handler)](const httplib::Request& request,
                                                           httplib::Response& response) {
    HttpRequest asked;
    asked.path = request.path;
    for (const auto& [name, value] : request.params) asked.query.emplace(name, value);
    HttpResponse answer = handler(asked);
    response.status = answer.status;
    for (const auto& [name, value] : answer.headers) response.set_header(name, value);
    response.set_content(std::move(answer.body), answer.content_type);
  });
}

}  // namespace

struct HttpEndpoint::Server {
  httplib::Server http;
};

HttpEndpoint::HttpEndpoint(std::unique_ptr<Server> server, int port)
    : server_(std::move(server)), port_(port) {}

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Start(const std::string& host, int port,
                                                                  std::vector<HttpRoute> routes) {
  auto server = std::make_unique<Server>();
  Configure(server->http);
  for (HttpRoute& route : routes) AddRoute(server->http, std::move(route));
  errno = 0;
  if (port == 0) {
    port = server->http.bind_to_any_port(host);
  } else if (!server->http.bind_to_port(host, port)) {
    const std::string reason = errno == 0 ? "" : absl::StrCat(" (", strerror(errno), ")");
    return absl::UnavailableError(
        absl::StrCat("HTTP: cannot listen on ", host, ":", port, reason,
                     ": the port is in use or the address is not of this machine"));
  }
  if (port <= 0) {
    return absl::UnavailableError(
        absl::StrCat("HTTP: cannot listen on ", host, ": the address is not of this machine"));
  }
  std::unique_ptr<HttpEndpoint> endpoint(new HttpEndpoint(std::move(server), port));
  httplib::Server* const http = &endpoint->server_->http;
  endpoint->thread_ = std::thread([http] { http->listen_after_bind(); });
  // Stopping a server that does not run yet would have no effect, and joining would wait for ever.
  while (!http->is_running()) std::this_thread::yield();
  return endpoint;
}

HttpEndpoint::~HttpEndpoint() {
  server_->http.stop();
  thread_.join();
}

}  // namespace distro
