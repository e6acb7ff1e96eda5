// The URL of an HTTP server, as a flag gives it. Pure; the bytes are untrusted input.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace distro {

struct HttpUrl {
  bool tls = false;
  std::string host = {};  // without brackets
  int port = 0;
  std::string path = {};  // "" or "/some/path": what comes before a request's own path

  // "https://mirror.example:8443/some/path".
  std::string Text() const;
  // The value of a Host header: without the port where it is that of the scheme.
  std::string Authority() const;
};

// "http://host", "https://host:8443/some/path/", "http://[::1]:80". InvalidArgument: another
// scheme, no host, a port outside 1 to 65535, or a user, a query, a fragment or a space in it.
absl::StatusOr<HttpUrl> ParseHttpUrl(absl::string_view url);

}  // namespace distro
