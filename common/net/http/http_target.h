// Parses the target of an HTTP request into path and query. Pure; the bytes are untrusted input.
#pragma once

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace distro {

struct HttpRequest {
  std::string path;  // as it was sent
  // The first of each name, decoded; "?verbose" is {"verbose", ""}.
  std::map<std::string, std::string> query;
};

// Parses "/status.json?a=b%20c". A "%" without two hexadecimal digits is kept; "+" is a space, in
// the query only. InvalidArgument: no path, as in "*" or "http://host/".
absl::StatusOr<HttpRequest> ParseHttpTarget(absl::string_view target);

}  // namespace distro
