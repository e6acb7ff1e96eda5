// Names, addresses and connections with a deadline on each: nothing here blocks longer. Not
// thread-safe.
//
//   const Deadline deadline(absl::Seconds(10), wanted);
//   DISTRO_ASSIGN_OR_RETURN(const std::vector<SocketAddress> found, Resolve(host, port, deadline));
//   DISTRO_ASSIGN_OR_RETURN(const TcpStream stream, TcpStream::Connect(found, deadline));
#pragma once

#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace distro {

// Until when a step may take, by a clock that nobody sets; and whether anybody still wants it.
class Deadline {
 public:
  // A day at most. `wanted` is asked every 100 ms while something waits; empty: until the end.
  explicit Deadline(absl::Duration limit, std::function<bool()> wanted = nullptr);

  // Whether time is left, and somebody wants it.
  bool Goes() const;
  // How long to wait before that is asked again: 1 to 100.
  int SliceMilliseconds() const;
  // DeadlineExceeded "no answer within 10s", or Cancelled. Requires that it no longer Goes().
  absl::Status Why() const;

 private:
  absl::Duration limit_;
  std::chrono::steady_clock::time_point end_;
  std::function<bool()> wanted_;
};

struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;

  std::string Text() const;  // "127.0.0.1", "2001:db8::1"
};

// At most 8 addresses of a name or a literal, in the system's order. Unavailable: what the resolver
// says. DeadlineExceeded, Cancelled: of the deadline; the look-up then ends by itself, in a thread
// of its own, since the system's resolver cannot be told to stop.
absl::StatusOr<std::vector<SocketAddress>> Resolve(const std::string& host, int port,
                                                   const Deadline& deadline);

// Bytes both ways.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // All of `bytes`. Unavailable: the connection broke. Otherwise of the deadline.
  virtual absl::Status Send(absl::string_view bytes, const Deadline& deadline) = 0;
  // 1 to `limit` bytes, or none at the end of the stream. Errors as Send.
  virtual absl::StatusOr<std::string> Receive(size_t limit, const Deadline& deadline) = 0;
};

class TcpStream final : public ByteStream {
 public:
  // To the first that answers; all are tried at the same time. Unavailable: what each says, such
  // as "127.0.0.1: connection refused". Otherwise of the deadline.
  static absl::StatusOr<std::unique_ptr<TcpStream>> Connect(
      const std::vector<SocketAddress>& addresses, const Deadline& deadline);
  ~TcpStream() override;
  TcpStream(const TcpStream&) = delete;
  TcpStream& operator=(const TcpStream&) = delete;

  absl::Status Send(absl::string_view bytes, const Deadline& deadline) override;
  absl::StatusOr<std::string> Receive(size_t limit, const Deadline& deadline) override;
  // To which it leads.
  const std::string& address() const { return address_; }

 private:
  TcpStream(int fd, std::string address) : fd_(fd), address_(std::move(address)) {}

  const int fd_;  // does not block
  const std::string address_;
};

}  // namespace distro
