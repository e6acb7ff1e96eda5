// Fetches a small text by plain HTTP, for tools that read a process's HTTP endpoint. Blocking.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/net/http/http_client.h"

namespace distro {

// GET http://`address``path`. InvalidArgument: `address` is not "host:port". Unavailable: no
// response within `timeout`, or one above `max_bytes`; the message names the address.
absl::StatusOr<HttpText> HttpGet(const std::string& address, const std::string& path,
                                 absl::Duration timeout, size_t max_bytes);

}  // namespace distro
