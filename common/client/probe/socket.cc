#include "common/client/probe/socket.h"

#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/steady_cond_var.h"

namespace distro {
namespace {

constexpr int kSliceMs = 100;
constexpr absl::Duration kLongest = absl::Hours(24);
constexpr size_t kMaxAddresses = 8;

std::string ErrorText(int error) {
  return absl::AsciiStrToLower(std::string(std::strerror(error)));
}

// Shared by the look-up's thread and its caller; the result is valid when it is done.
struct LookUp {
  SteadyNotification done;
  absl::StatusOr<std::vector<SocketAddress>> result = absl::UnknownError("no result");
};

absl::StatusOr<std::vector<SocketAddress>> AskSystem(const std::string& host, int port, int flags) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags | AI_NUMERICSERV;
  addrinfo* list = nullptr;
  const int error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &list);
  if (error != 0) {
    return absl::UnavailableError(error == EAI_SYSTEM ? ErrorText(errno) : gai_strerror(error));
  }
  const auto free = absl::MakeCleanup([list] { freeaddrinfo(list); });
  std::vector<SocketAddress> found;
  for (const addrinfo* each = list; each != nullptr && found.size() < kMaxAddresses;
       each = each->ai_next) {
    SocketAddress address;
    if (each->ai_addrlen > sizeof(address.storage)) continue;
    std::memcpy(&address.storage, each->ai_addr, each->ai_addrlen);
    address.size = each->ai_addrlen;
    found.push_back(address);
  }
  if (found.empty()) return absl::UnavailableError("the name has no address");
  return found;
}

// The descriptor of a connection attempt; -1: none. Sets `error` if it failed at once.
int BeginConnect(const SocketAddress& address, int* error) {
  const int fd =
      socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
  *error = 0;
  if (fd >= 0 &&
      connect(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0)
    return fd;
  if (fd >= 0 && errno == EINPROGRESS) return fd;
  *error = errno;
  if (fd >= 0) close(fd);
  return -1;
}

int ErrorOf(int fd) {
  int error = 0;
  socklen_t size = sizeof(error);
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

// Whether `fd` became ready before the deadline.
bool Await(int fd, short events, const Deadline& deadline) {
  while (deadline.Goes()) {
    pollfd one = {.fd = fd, .events = events, .revents = 0};
    if (poll(&one, 1, deadline.SliceMilliseconds()) > 0) return true;
  }
  return false;
}

}  // namespace

Deadline::Deadline(absl::Duration limit, std::function<bool()> wanted)
    : limit_(std::min(limit, kLongest)),
      end_(std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(limit_)),
      wanted_(std::move(wanted)) {}

bool Deadline::Goes() const {
  return std::chrono::steady_clock::now() < end_ && (wanted_ == nullptr || wanted_());
}

int Deadline::SliceMilliseconds() const {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
      end_ - std::chrono::steady_clock::now());
  return std::clamp(static_cast<int>(std::min<int64_t>(left.count() + 1, kSliceMs)), 1, kSliceMs);
}

absl::Status Deadline::Why() const {
  if (wanted_ != nullptr && !wanted_()) return absl::CancelledError("stopped");
  return absl::DeadlineExceededError(absl::StrCat(
      "no answer within ", absl::FormatDuration(absl::Ceil(limit_, absl::Milliseconds(1)))));
}

std::string SocketAddress::Text() const {
  char text[NI_MAXHOST] = "";
  getnameinfo(reinterpret_cast<const sockaddr*>(&storage), size, text, sizeof(text), nullptr, 0,
              NI_NUMERICHOST);
  return text;
}

absl::StatusOr<std::vector<SocketAddress>> Resolve(const std::string& host, int port,
                                                   const Deadline& deadline) {
  auto literal = AskSystem(host, port, AI_NUMERICHOST);
  if (literal.ok()) return literal;
  const auto look_up = std::make_shared<LookUp>();
  std::thread([look_up, host, port] {
    look_up->result = AskSystem(host, port, 0);
    look_up->done.Notify();
  }).detach();
  while (deadline.Goes()) {
    if (look_up->done.WaitFor(absl::Milliseconds(deadline.SliceMilliseconds()))) {
      return look_up->result;
    }
  }
  return deadline.Why();
}

absl::StatusOr<std::unique_ptr<TcpStream>> TcpStream::Connect(
    const std::vector<SocketAddress>& addresses, const Deadline& deadline) {
  std::vector<pollfd> open;  // one per address; -1: failed
  std::vector<std::string> errors;
  const auto failed = [&](size_t i, int error) {
    errors.push_back(absl::StrCat(addresses[i].Text(), ": ", ErrorText(error)));
  };
  const auto close_all = absl::MakeCleanup([&open] {
    for (const pollfd& each : open)
      if (each.fd >= 0) close(each.fd);
  });
  for (size_t i = 0; i < addresses.size(); ++i) {
    int error = 0;
    open.push_back({.fd = BeginConnect(addresses[i], &error), .events = POLLOUT, .revents = 0});
    if (open.back().fd < 0) failed(i, error);
  }
  while (errors.size() < addresses.size()) {
    if (!deadline.Goes()) return deadline.Why();
    if (poll(open.data(), open.size(), deadline.SliceMilliseconds()) <= 0) continue;
    for (size_t i = 0; i < open.size(); ++i) {
      if (open[i].fd < 0 || open[i].revents == 0) continue;
      const int fd = std::exchange(open[i].fd, -1);
      const int error = ErrorOf(fd);
      if (error == 0) return std::unique_ptr<TcpStream>(new TcpStream(fd, addresses[i].Text()));
      close(fd);
      failed(i, error);
    }
  }
  return absl::UnavailableError(absl::StrJoin(errors, ", "));
}

TcpStream::~TcpStream() { close(fd_); }

absl::Status TcpStream::Send(absl::string_view bytes, const Deadline& deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (errno != EAGAIN && errno != EINTR) {
      return absl::UnavailableError(ErrorText(errno));
    } else if (!Await(fd_, POLLOUT, deadline)) {
      return deadline.Why();
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> TcpStream::Receive(size_t limit, const Deadline& deadline) {
  std::string bytes(limit, '\0');
  while (Await(fd_, POLLIN, deadline)) {
    const ssize_t received = recv(fd_, bytes.data(), bytes.size(), 0);
    if (received >= 0) {
      bytes.resize(static_cast<size_t>(received));
      return bytes;
    }
    if (errno != EAGAIN && errno != EINTR) return absl::UnavailableError(ErrorText(errno));
  }
  return deadline.Why();
}

}  // namespace distro
