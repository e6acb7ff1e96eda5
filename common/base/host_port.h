// "host:port" of an address to listen on. Pure.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace distro {

struct HostPort {
  std::string host;  // without brackets
  int port = 0;      // 0: a free one is taken
};

// "127.0.0.1:7700", "[::1]:0". InvalidArgument: no host, no port, a port outside 0..65535, IPv6 without brackets.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view text);

}  // namespace distro
