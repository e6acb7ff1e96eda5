// Resolves names and connects, with a deadline for every operation: nothing here blocks longer. Not
// thread-safe.
//
//   const Deadline deadline(absl::Seconds(10), wanted);
//   DISTRO_ASSIGN_OR_RETURN(const std::vector<SocketAddress> found, Resolve(host, port, deadline));
//   DISTRO_ASSIGN_OR_RETURN(const TcpStream stream, TcpStream::Connect(found, deadline));
#pragma once

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
#include "common/net/dns/look_up.h"

namespace distro {

// The time limit of a step, on the monotonic clock, and whether the caller still wants its result.
class Deadline {
 public:
  // `limit` is at most a day. `wanted` is called every 100 ms while something waits; empty: always.
  explicit Deadline(absl::Duration limit, std::function<bool()> wanted = nullptr);

  // Whether time is left and the result is still wanted.
  bool Goes() const;
  // How long to wait before Goes() is asked again: 1 to 100.
  int SliceMilliseconds() const;
  // DeadlineExceeded "no answer within 10s", or Cancelled. Requires that Goes() is false.
  absl::Status Why() const;

 private:
  absl::Duration limit_;
  std::chrono::steady_clock::time_point end_;
  std::function<bool()> wanted_;
};

// Resolves a name or a literal to at most 8 addresses, in the system's order. Unavailable: the
// resolver's error. DeadlineExceeded, Cancelled: of the deadline; the look-up then goes on in its
// own thread (look_up.h).
absl::StatusOr<std::vector<SocketAddress>> Resolve(const std::string& host, int port,
                                                   const Deadline& deadline);

// A bidirectional stream of bytes.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Sends all of `bytes`. Unavailable: the connection broke. Otherwise the deadline's status.
  virtual absl::Status Send(absl::string_view bytes, const Deadline& deadline) = 0;
  // Receives 1 to `limit` bytes; an empty string at the end of the stream. Errors as Send.
  virtual absl::StatusOr<std::string> Receive(size_t limit, const Deadline& deadline) = 0;
};

class TcpStream final : public ByteStream {
 public:
  // Connects to all addresses at the same time and keeps the first that answers. Unavailable: the
  // error of each, such as "127.0.0.1: connection refused". Otherwise the deadline's status.
  static absl::StatusOr<std::unique_ptr<TcpStream>> Connect(
      const std::vector<SocketAddress>& addresses, const Deadline& deadline);
  ~TcpStream() override;
  TcpStream(const TcpStream&) = delete;
  TcpStream& operator=(const TcpStream&) = delete;

  absl::Status Send(absl::string_view bytes, const Deadline& deadline) override;
  absl::StatusOr<std::string> Receive(size_t limit, const Deadline& deadline) override;
  // The address it is connected to.
  const std::string& address() const { return address_; }

 private:
  TcpStream(int fd, std::string address) : fd_(fd), address_(std::move(address)) {}

  const int fd_;  // non-blocking
  const std::string address_;
};

}  // namespace distro
