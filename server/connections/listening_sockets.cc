#include "server/connections/listening_sockets.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace distro::server {
namespace {

constexpr int kBacklog = 4096;  // the kernel takes its own limit where that is lower

using Addresses = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

absl::StatusOr<Addresses> Resolve(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int error = getaddrinfo(host.c_str(), "0", &hints, &found); error != 0)
    return absl::InvalidArgumentError(absl::StrCat(host, ": ", gai_strerror(error)));
  return Addresses(found, &freeaddrinfo);
}

void SetPort(sockaddr_storage* address, int port) {
  const in_port_t bytes = htons(static_cast<uint16_t>(port));
  if (address->ss_family == AF_INET) {
    reinterpret_cast<sockaddr_in*>(address)->sin_port = bytes;
  } else {
    reinterpret_cast<sockaddr_in6*>(address)->sin6_port = bytes;
  }
}

int PortOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET ? reinterpret_cast<sockaddr_in*>(&address)->sin_port
                                            : reinterpret_cast<sockaddr_in6*>(&address)->sin6_port);
}

// Returns -1 and sets errno on failure.
int ListenOn(const sockaddr_storage& address, socklen_t size, bool both_families) {
  const int fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int yes = 1;
  const int v6_only = both_families ? 0 : 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (address.ss_family == AF_INET6)
    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &v6_only, sizeof(v6_only));
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address), size) == 0 && listen(fd, kBacklog) == 0)
    return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

sockaddr_storage AnyAddress() {
  sockaddr_in6 any = {};
  any.sin6_family = AF_INET6;
  sockaddr_storage address = {};
  std::memcpy(&address, &any, sizeof(any));
  return address;
}

}  // namespace

absl::StatusOr<ListeningSockets> ListeningSockets::Open(const std::string& host, int port) {
  ListeningSockets sockets;
  sockets.port_ = port;
  int error = 0;
  const auto add = [&](sockaddr_storage address, socklen_t size, bool both_families) {
    SetPort(&address, sockets.port_);
    const int fd = ListenOn(address, size, both_families);
    if (fd < 0) error = errno;
    if (fd < 0) return;
    sockets.fds_.push_back(fd);
    sockets.port_ = PortOf(fd);
  };
  const bool any = host == "::";
  if (any) add(AnyAddress(), sizeof(sockaddr_in6), true);
  if (sockets.fds_.empty() && error != EADDRINUSE) {
    DISTRO_ASSIGN_OR_RETURN(const Addresses found, Resolve(any ? "0.0.0.0" : host));
    for (const addrinfo* i = found.get(); i != nullptr; i = i->ai_next) {
      sockaddr_storage address = {};
      std::memcpy(&address, i->ai_addr, i->ai_addrlen);
      add(address, i->ai_addrlen, false);
    }
  }
  if (!sockets.fds_.empty() && error != EADDRINUSE) return sockets;
  return absl::UnavailableError(absl::StrCat("cannot listen on ", host, ":", port, " (",
                                             std::strerror(error),
                                             "): in use, or not an address of this machine"));
}

ListeningSockets::~ListeningSockets() {
  for (const int fd : fds_) close(fd);
}

}  // namespace distro::server
