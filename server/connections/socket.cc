#include "server/connections/socket.h"

#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace distro::server {

std::optional<SocketName> NameSocket(int fd) {
  SocketName name{.fd = fd};
  socklen_t size = sizeof(name.cookie);
  if (getsockopt(fd, SOL_SOCKET, SO_COOKIE, &name.cookie, &size) != 0) return std::nullopt;
  return name;
}

std::optional<ConnectionBytes> BytesOf(const SocketName& socket) {
  const std::optional<SocketName> now = NameSocket(socket.fd);
  if (!now || now->cookie != socket.cookie) return std::nullopt;
  tcp_info info = {};
  socklen_t size = sizeof(info);
  if (getsockopt(socket.fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  int waiting = 0;  // in the kernel: its owner has not read it yet
  if (ioctl(socket.fd, SIOCINQ, &waiting) != 0) waiting = 0;
  const uint64_t received = info.tcpi_bytes_received;
  return ConnectionBytes{
      .received = received - std::min(received, static_cast<uint64_t>(std::max(waiting, 0))),
      .acknowledged = info.tcpi_bytes_acked};
}

// The duplicate keeps the socket open, and its number from being reused, between check and use.
void Disconnect(const SocketName& socket) {
  const sockaddr nowhere = {.sa_family = AF_UNSPEC, .sa_data = {}};
  const int held = fcntl(socket.fd, F_DUPFD_CLOEXEC, 0);
  if (held < 0) return;
  if (const auto name = NameSocket(held); name && name->cookie == socket.cookie)
    connect(held, &nowhere, sizeof(nowhere));
  close(held);
}

void Reset(int fd) {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
  close(fd);
}

}  // namespace distro::server
