#include "common/net/http/http_endpoint.h"

#include <sys/socket.h>
#include <time.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "boost/asio/io_context.hpp"
#include "boost/asio/ip/v6_only.hpp"
#include "boost/asio/post.hpp"
#include "boost/asio/thread_pool.hpp"
#include "common/base/address.h"
#include "common/base/clock.h"
#include "common/base/exceptions.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/net/http/http_connection.h"
#include "common/net/http/http_limits.h"

namespace distro {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr int kHandlerThreads = 2;
// Pause after an accept that failed for lack of file descriptors or memory.
constexpr std::chrono::milliseconds kAcceptPause(100);

// The key under which a client's connections are limited.
std::string AddressOf(const tcp::endpoint& from) {
  sockaddr_storage address = {};
  std::memcpy(&address, from.data(), from.size());
  return PeerOf(address).address;
}

// CPU time of this thread.
absl::Duration ProcessorTime() {
  timespec used = {};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return absl::DurationFromTimespec(used);
}

absl::Status CannotListen(const std::string& host, int port, const error_code& error) {
  return absl::UnavailableError(
      absl::StrCat("HTTP: cannot listen on ", host, ":", port, " (", error.message(),
                   "): the port is in use or the address is not of this machine"));
}

}  // namespace

// Everything but the constructor, Listen, Run and Stop runs on the I/O thread.
class HttpEndpoint::Server {
 public:
  Server(std::vector<HttpRoute> routes, const HttpLimits& limits)
      : limits_(limits),
        places_(limits.connections, limits.connections_of_peer, limits.answer_bytes),
        queue_(limits.queue),
        budget_(limits.handler_share, limits.handler_burst) {
    for (HttpRoute& route : routes) routes_.emplace(route.path, std::move(route));
  }

  // The port.
  absl::StatusOr<int> Listen(const std::string& host, int port);
  // Returns after Stop.
  void Run() { io_.run(); }
  void Stop();

 private:
  struct Job {
    std::shared_ptr<HttpConnection> connection;
    const HttpRoute* route;
    HttpRequest request;
  };

  error_code Bind(const tcp::endpoint& endpoint);
  void Accept();
  void Admit(tcp::socket socket);
  // nullptr: there is none.
  const HttpRoute* RouteOf(const std::string& path) const;
  void OnAsked(HttpConnection* connection, HttpRequest request);
  void OnSends(HttpConnection* connection, size_t bytes);
  void OnEnded(HttpConnection* connection);
  void CallHandlers();
  void CallHandlersAfter(absl::Duration wait);
  void Abort(uint64_t id);
  void Close();

  const HttpLimits limits_;
  const HttpConnection::Owner owner_{
      .asked = [this](HttpConnection* it, HttpRequest request) { OnAsked(it, std::move(request)); },
      .sends = [this](HttpConnection* it, size_t bytes) { OnSends(it, bytes); },
      .ended = [this](HttpConnection* it) { OnEnded(it); }};
  std::map<std::string, HttpRoute> routes_;
  asio::io_context io_;
  tcp::acceptor acceptor_{io_};
  asio::steady_timer accept_again_{io_};
  tcp::endpoint peer_;  // of the connection that is accepted next
  HttpPlaces places_;
  uint64_t last_id_ = 0;
  std::map<uint64_t, std::shared_ptr<HttpConnection>> connections_;
  HttpQueue queue_;
  std::map<uint64_t, Job> jobs_;  // of those in the queue
  int running_ = 0;
  CpuBudget budget_;
  asio::steady_timer call_again_{io_};
  asio::thread_pool handlers_{kHandlerThreads};  // last: its threads use all of the above
};

// Sets SO_REUSEADDR but not SO_REUSEPORT, which would let two processes share a port without an
// error.
error_code HttpEndpoint::Server::Bind(const tcp::endpoint& endpoint) {
  error_code error;
  error_code ignored;
  acceptor_.close(ignored);
  acceptor_.open(endpoint.protocol(), error);
  if (!error) acceptor_.set_option(asio::socket_base::reuse_address(true), error);
  if (!error && endpoint.address().is_v6()) {
    const bool any = endpoint.address().is_unspecified();
    acceptor_.set_option(asio::ip::v6_only(!any), error);
  }
  if (!error) acceptor_.bind(endpoint, error);
  if (!error) acceptor_.listen(asio::socket_base::max_listen_connections, error);
  return error;
}

absl::StatusOr<int> HttpEndpoint::Server::Listen(const std::string& host, int port) {
  error_code error;
  tcp::resolver resolver(io_);
  const auto found = resolver.resolve(
      host, std::to_string(port), tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error) return CannotListen(host, port, error);
  for (const auto& entry : found) {
    error = Bind(entry.endpoint());
    if (!error) break;
  }
  // Where the kernel has no IPv6.
  if (host == "::" && error && error != asio::error::address_in_use)
    error = Bind(tcp::endpoint(tcp::v4(), static_cast<uint16_t>(port)));
  if (error) return CannotListen(host, port, error);
  Accept();
  return acceptor_.local_endpoint(error).port();
}

void HttpEndpoint::Server::Accept() {
  acceptor_.async_accept(peer_, [this](error_code error, tcp::socket socket) {
    if (!acceptor_.is_open()) return;
    if (!error) {
      Admit(std::move(socket));
      return Accept();
    }
    accept_again_.expires_after(kAcceptPause);
    accept_again_.async_wait([this](error_code) {
      if (acceptor_.is_open()) Accept();
    });
  });
}

void HttpEndpoint::Server::Admit(tcp::socket socket) {
  const uint64_t id = ++last_id_;
  if (const auto leaves = places_.Take(id, AddressOf(peer_))) Abort(*leaves);
  const auto connection = std::make_shared<HttpConnection>(std::move(socket), id, limits_, owner_);
  connections_.emplace(id, connection);
  connection->Start();
}

const HttpRoute* HttpEndpoint::Server::RouteOf(const std::string& path) const {
  const auto exact = routes_.find(path);
  if (exact != routes_.end()) return &exact->second;
  for (const auto& [begin, route] : routes_) {
    if (route.prefix && absl::StartsWith(path, begin)) return &route;
  }
  return nullptr;
}

void HttpEndpoint::Server::OnAsked(HttpConnection* connection, HttpRequest request) {
  places_.Asked(connection->id());
  const HttpRoute* const route = RouteOf(request.path);
  if (route == nullptr) return connection->Answer({.status = 404, .body = "Not Found\n"});
  if (route->at_once) return connection->Answer(route->handler(request));
  const uint64_t id = connection->id();
  jobs_.emplace(id, Job{connection->shared_from_this(), route, std::move(request)});
  if (const auto refused = queue_.Push(id, places_.PeerOf(id))) {
    const Job job = std::move(jobs_.extract(*refused).mapped());
    job.connection->Answer({.status = 503, .body = "too many requests are waiting: try again\n"});
  }
  CallHandlers();
}

void HttpEndpoint::Server::CallHandlers() {
  while (running_ < kHandlerThreads && !jobs_.empty()) {
    const absl::Duration wait = budget_.WaitAt(Clock::Real()->MonotonicNow());
    if (wait > absl::ZeroDuration()) return CallHandlersAfter(wait);
    ++running_;
    auto next = jobs_.extract(*queue_.Pop());
    asio::post(handlers_, [this, job = std::move(next.mapped())]() mutable {
      const absl::Duration before = ProcessorTime();
      HttpResponse response = job.route->handler(job.request);
      const absl::Duration used = ProcessorTime() - before;
      asio::post(io_, [this, used, connection = std::move(job.connection),
                       response = std::move(response)]() mutable {
        --running_;
        budget_.Spend(used);
        connection->Answer(std::move(response));
        CallHandlers();
      });
    });
  }
}

void HttpEndpoint::Server::CallHandlersAfter(absl::Duration wait) {
  call_again_.expires_after(absl::ToChronoNanoseconds(wait));
  call_again_.async_wait([this](error_code error) {
    if (!error) CallHandlers();
  });
}

void HttpEndpoint::Server::OnSends(HttpConnection* connection, size_t bytes) {
  while (const auto leaves = places_.Hold(connection->id(), bytes)) Abort(*leaves);
}

void HttpEndpoint::Server::OnEnded(HttpConnection* connection) {
  queue_.Remove(connection->id());
  jobs_.erase(connection->id());
  places_.Leave(connection->id());
  connections_.erase(connection->id());
}

void HttpEndpoint::Server::Abort(uint64_t id) {
  const std::shared_ptr<HttpConnection> connection = connections_.at(id);  // outlives its place
  connection->Abort();
}

void HttpEndpoint::Server::Close() {
  error_code ignored;
  acceptor_.close(ignored);
  accept_again_.cancel();
  call_again_.cancel();
  while (!connections_.empty()) Abort(connections_.begin()->first);
}

// Without the acceptor and connections only running handlers remain; then Run returns.
void HttpEndpoint::Server::Stop() {
  asio::post(io_, [this] { Close(); });
}

HttpEndpoint::HttpEndpoint(std::unique_ptr<Server> server, int port)
    : server_(std::move(server)), port_(port) {}

absl::StatusOr<std::unique_ptr<HttpEndpoint>> HttpEndpoint::Start(const std::string& host, int port,
                                                                  std::vector<HttpRoute> routes,
                                                                  const HttpLimits& limits) {
  try {
    auto server = std::make_unique<Server>(std::move(routes), limits);
    DISTRO_ASSIGN_OR_RETURN(const int bound, server->Listen(host, port));
    std::unique_ptr<HttpEndpoint> endpoint(new HttpEndpoint(std::move(server), bound));
    endpoint->thread_ = std::thread([server = endpoint->server_.get()] { server->Run(); });
    return endpoint;
  } catch (const boost::system::system_error& error) {  // Asio's: files or threads are exhausted
    return Annotate(ExceptionToStatus(std::system_error(error.code())), "HTTP");
  } catch (const std::exception& error) {
    return Annotate(ExceptionToStatus(error), "HTTP");
  }
}

HttpEndpoint::~HttpEndpoint() {
  if (!thread_.joinable()) return;
  server_->Stop();
  thread_.join();
}

}  // namespace distro
