// Plain sockets on loopback: clients below gRPC and HTTP, the listening socket of this process, and
// a port for a server that is started again. Blocking; not thread-safe.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/str_cat.h"

namespace distro::testing {

inline sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

class LoopbackClient {
 public:
  LoopbackClient() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~LoopbackClient() { close(fd_); }
  LoopbackClient(const LoopbackClient&) = delete;
  LoopbackClient& operator=(const LoopbackClient&) = delete;

  bool Connect(int port) {
    const sockaddr_in to = Loopback(port);
    return connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) == 0;
  }
  // Takes that port for its own end.
  bool Bind(int port) {
    const sockaddr_in at = Loopback(port);
    return bind(fd_, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0;
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

// A port for servers that start one after the other. Nobody else gets it in between: it is bound
// here, but not listened on, so connections are refused then. A server needs SO_REUSEADDR.
//   HeldPort port;
//   options.listen = port.address();
class HeldPort {
 public:
  HeldPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int yes = 1;
    EXPECT_EQ(setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)), 0);
    sockaddr_in at = Loopback(0);
    socklen_t size = sizeof(at);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&at), size), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&at), &size), 0);
    number_ = ntohs(at.sin_port);
  }
  ~HeldPort() { close(fd_); }
  HeldPort(const HeldPort&) = delete;
  HeldPort& operator=(const HeldPort&) = delete;

  int fd() const { return fd_; }
  int number() const { return number_; }
  std::string address() const { return absl::StrCat("127.0.0.1:", number_); }

 private:
  const int fd_;
  int number_ = 0;
};

}  // namespace distro::testing
