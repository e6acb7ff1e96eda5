#include "common/client/probe/socket.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace distro {
namespace {

constexpr int kSliceMs = 100;
constexpr absl::Duration kLongest = absl::Hours(24);
constexpr size_t kMaxAddresses = 8;

std::string ErrorText(int error) {
  return absl::AsciiStrToLower(std::string(std::strerror(error)));
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

absl::StatusOr<std::vector<SocketAddress>> Resolve(const std::string& host, int port,
                                                   const Deadline& deadline) {
  LookUp look_up(host, port);
  while (!look_up.WaitFor(absl::Milliseconds(deadline.SliceMilliseconds()))) {
    if (!deadline.Goes()) return deadline.Why();
  }
  auto found = look_up.result();
  if (found.ok() && found->size() > kMaxAddresses) found->resize(kMaxAddresses);
  return found;
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
