#include "common/telemetry/http_get.h"

#include <httplib.h>

#include "absl/strings/str_cat.h"
#include "common/base/host_port.h"
#include "common/base/status_macros.h"

namespace distro {

absl::StatusOr<HttpText> HttpGet(const std::string& address, const std::string& path,
                                 absl::Duration timeout, size_t max_bytes) {
  DISTRO_ASSIGN_OR_RETURN(const HostPort target, ParseHostPort(address));
  httplib::Client client(target.host, target.port);
  const auto limit = absl::ToChronoMicroseconds(timeout);
  client.set_connection_timeout(limit);
  client.set_read_timeout(limit);
  client.set_write_timeout(limit);
  HttpText text;
  const httplib::Result result = client.Get(path, [&](const char* data, size_t bytes) {
    text.body.append(data, bytes);
    return text.body.size() <= max_bytes;
  });
  if (!result) {
    return absl::UnavailableError(
        absl::StrCat("http://", address, path, ": ", httplib::to_string(result.error())));
  }
  text.status = result->status;
  text.content_type = result->get_header_value("Content-Type");
  return text;
}

}  // namespace distro
