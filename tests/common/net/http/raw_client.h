// A TCP client that sends exactly the given bytes, from any loopback address. For tests of the HTTP
// server.
#pragma once

#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>

#include "absl/strings/string_view.h"
#include "gtest/gtest.h"

namespace distro::testing {

class RawClient {
 public:
  explicit RawClient(const std::string& from = "127.0.0.1", int receive_buffer = 0)
      : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    EXPECT_GE(fd_, 0);
    if (receive_buffer > 0)
      setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof(receive_buffer));
    const sockaddr_in address = Address(from, 0);
    EXPECT_EQ(bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  RawClient(int port, const std::string& text, const std::string& from = "127.0.0.1",
            int receive_buffer = 0)
      : RawClient(from, receive_buffer) {
    Connect(port);
    Send(text);
  }
  ~RawClient() { close(fd_); }
  RawClient(const RawClient&) = delete;

  void Connect(int port) {
    const sockaddr_in address = Address("127.0.0.1", port);
    ASSERT_EQ(connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  }
  // Listens instead, on the port it returns, and never accepts.
  int Listen() {
    sockaddr_in address = {};
    socklen_t size = sizeof(address);
    EXPECT_EQ(listen(fd_, 1), 0);
    EXPECT_EQ(getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    return ntohs(address.sin_port);
  }
  // False: the other end has closed.
  bool Send(absl::string_view text) {
    return send(fd_, text.data(), text.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(text.size());
  }
  // Whether there are bytes, or the end of the stream, to read.
  bool Readable(int milliseconds) {
    pollfd entry{.fd = fd_, .events = POLLIN, .revents = 0};
    return poll(&entry, 1, milliseconds) == 1;
  }
  // Reads at most `bytes`; an empty string: the other end has closed or reset. Waits without limit.
  std::string ReadSome(size_t bytes) {
    std::string text(bytes, '\0');
    const ssize_t got = recv(fd_, text.data(), bytes, 0);
    text.resize(got > 0 ? got : 0);
    return text;
  }
  std::string ReadAll() {
    std::string text;
    for (std::string more = ReadSome(65536); !more.empty(); more = ReadSome(65536)) text += more;
    return text;
  }

 private:
  static sockaddr_in Address(const std::string& host, int port) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(inet_pton(AF_INET, host.c_str(), &address.sin_addr), 1);
    return address;
  }

  const int fd_;
};

}  // namespace distro::testing
