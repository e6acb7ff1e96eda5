// Plain sockets on loopback: clients below gRPC and HTTP, and the listening socket of this process.
// Blocking; not thread-safe.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

namespace distro::testing {

class LoopbackClient {
 public:
  LoopbackClient() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~LoopbackClient() { close(fd_); }
  LoopbackClient(const LoopbackClient&) = delete;
  LoopbackClient& operator=(const LoopbackClient&) = delete;

  bool Connect(int port) {
    sockaddr_in to = {};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons(static_cast<uint16_t>(port));
    return connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0;
  }
  bool Send(const std::string& bytes) {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }
  // Waits until the other end has ended or reset the connection.
  bool SeesTheEnd() {
    char byte;
    return recv(fd_, &byte, 1, 0) <= 0;
  }

 private:
  const int fd_;
};

// The socket of this process that listens on `port` of an IPv4 address; -1: there is none.
inline int ListeningSocketOf(int port) {
  for (int fd = 0; fd < 1024; ++fd) {
    int listens = 0;
    socklen_t size = sizeof(listens);
    sockaddr_in at = {};
    socklen_t at_size = sizeof(at);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) == 0 && listens != 0 &&
        getsockname(fd, reinterpret_cast<sockaddr*>(&at), &at_size) == 0 &&
        ntohs(at.sin_port) == port) {
      return fd;
    }
  }
  return -1;
}

}  // namespace distro::testing
