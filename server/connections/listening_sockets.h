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
  // Listens on every address that `host` names, all with the same port; port 0: a free one.
  // "0.0.0.0" and "::" stand for both families. Non-blocking. Unavailable: one is in use, or none
  // is of this machine; names it and the error. InvalidArgument: `host` names nothing.
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
