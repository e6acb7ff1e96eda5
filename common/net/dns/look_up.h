// Looks up the addresses of a host for a caller that decides how long it waits: the system's
// resolver, which can take a minute and cannot be stopped, runs in a thread that nobody joins.
//
//   LookUp look_up("mirror.example", 443);
//   while (!look_up.WaitFor(absl::Milliseconds(50))) {
//     if (!wanted()) return absl::CancelledError("cancelled");
//   }
//   DISTRO_ASSIGN_OR_RETURN(const std::vector<SocketAddress> found, look_up.result());
#pragma once

#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace distro {

// An address of IPv4 or IPv6, with its port.
struct SocketAddress {
  sockaddr_storage storage = {};
  socklen_t size = 0;

  std::string Text() const;  // "127.0.0.1", "2001:db8::1"
};

// Gives the addresses of a name, at least one. Blocks for as long as it likes; called in a thread
// that may outlive the caller.
using HostResolver =
    std::function<absl::StatusOr<std::vector<SocketAddress>>(const std::string& host, int port)>;

// One look-up. Not thread-safe. May be destroyed before it has ended, without waiting: its thread
// then goes on until the resolver returns.
class LookUp {
 public:
  // Begins. A literal such as "127.0.0.1" or "::1" ends at once and asks no resolver. `resolver`
  // empty: the system's.
  LookUp(const std::string& host, int port, HostResolver resolver = nullptr);

  // Waits for the end, at most for `timeout`: whether it has ended.
  bool WaitFor(absl::Duration timeout);
  // The addresses, in the resolver's order. Unavailable: the resolver's error, or there is no
  // thread for it. Requires that it has ended.
  const absl::StatusOr<std::vector<SocketAddress>>& result() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace distro
