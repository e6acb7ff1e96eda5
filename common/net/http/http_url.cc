#include "common/net/http/http_url.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/address.h"

namespace distro {
namespace {

bool IsPlain(char c) {
  return absl::ascii_isgraph(c) && !absl::StrContains("?#@\\\"<>", absl::string_view(&c, 1));
}

}  // namespace

std::string HttpUrl::Text() const {
  return absl::StrCat(tls ? "https://" : "http://", JoinHostPort(host, port), path);
}

std::string HttpUrl::Authority() const {
  const std::string with_port = JoinHostPort(host, port);
  return port == (tls ? 443 : 80) ? with_port.substr(0, with_port.rfind(':')) : with_port;
}

absl::StatusOr<HttpUrl> ParseHttpUrl(absl::string_view url) {
  const absl::Status invalid = absl::InvalidArgumentError(
      absl::StrCat(url, " is not http://HOST[:PORT][/PATH] or https://HOST[:PORT][/PATH]"));
  HttpUrl parsed;
  absl::string_view rest = url;
  parsed.tls = absl::ConsumePrefix(&rest, "https://");
  if (!parsed.tls && !absl::ConsumePrefix(&rest, "http://")) return invalid;
  if (!std::ranges::all_of(rest, IsPlain)) return invalid;
  const size_t slash = std::min(rest.find('/'), rest.size());
  const absl::string_view server = rest.substr(0, slash);
  absl::StatusOr<HostPort> address = ParseHostPort(server);
  if (!address.ok()) address = ParseHostPort(absl::StrCat(server, ":", parsed.tls ? 443 : 80));
  if (!address.ok() || address->port == 0) return invalid;
  parsed.host = address->host;
  parsed.port = address->port;
  rest.remove_prefix(slash);
  while (absl::ConsumeSuffix(&rest, "/")) {
  }
  parsed.path = std::string(rest);
  return parsed;
}

}  // namespace distro
