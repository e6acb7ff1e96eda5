// The sockets on which an address listens. Not thread-safe.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace distro::server {

// Open for as long as the object lives.
class ListeningSockets {
 public:
  // Listens on every address of `host`, all with the same port; port 0: any free port. "0.0.0.0"
  // means every IPv4 address; "::" every address of both families, or of IPv4 where the kernel has
  // no IPv6. Non-blocking. Unavailable: an address is in use, or none belongs
  // to this machine; names it and the error. InvalidArgument: `host` cannot be resolved.
  static absl::StatusOr<ListeningSockets> Open(const std::string& host, int port);
  ~ListeningSockets();
  ListeningSockets(ListeningSockets&& other) noexcept
      : fds_(std::exchange(other.fds_, {})), port_(other.port_) {}
  ListeningSockets& operator=(ListeningSockets&&) = delete;

  const std::vector<int>& fds() const { return fds_; }
  int port() const { return port_; }

 private:
  ListeningSockets() = default;
  std::vector<int> fds_;
  int port_ = 0;
};

}  // namespace distro::server
