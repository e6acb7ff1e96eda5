#include "common/client/options/channel_options.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace distro {
namespace {

absl::Status BadUrl(absl::string_view url, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("aggregator: \"", url, "\": ", why, " (expected host:port)"));
}

}  // namespace

absl::Status ValidateConnectTimeout(absl::Duration timeout) {
  if (timeout >= absl::ZeroDuration()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--connect_timeout: ", absl::FormatDuration(timeout), " is below 0"));
}

absl::StatusOr<std::string> ParseAggregatorUrl(absl::string_view url) {
  absl::string_view rest = url;
  for (const absl::string_view scheme : {"grpc://", "http://", "grpcs://", "https://"})
    if (absl::ConsumePrefix(&rest, scheme)) break;
  absl::ConsumeSuffix(&rest, "/");
  if (absl::StrContains(rest, "/")) return BadUrl(url, "a scheme or path that is not known");
  const size_t colon = rest.rfind(':');
  if (colon == absl::string_view::npos || colon == 0) return BadUrl(url, "no host or no port");
  const absl::string_view host = rest.substr(0, colon);
  const bool bracketed = host.front() == '[' && host.back() == ']';
  if (!bracketed && absl::StrContains(host, ":")) return BadUrl(url, "IPv6 without brackets");
  uint32_t port = 0;
  if (!absl::SimpleAtoi(rest.substr(colon + 1), &port) || port < 1 || port > 65535) {
    return BadUrl(url, "the port is outside 1..65535");
  }
  return std::string(rest);
}

absl::Status ValidateClientTls(bool insecure, const ClientTls& tls) {
  if (insecure) {
    if (tls == ClientTls()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "--insecure: contradicts --ca, --cert, --key, --token_file, --server_name and --invite: "
        "plaintext uses none of them; give one or the other");
  }
  if (!tls.invite.empty()) {
    if (tls.ca.empty() && tls.cert.empty() && tls.key.empty() && tls.token_file.empty())
      return absl::OkStatus();
    return absl::InvalidArgumentError(
        "--invite: has CA and token: leave --ca, --cert, --key and --token_file out");
  }
  if (tls.cert.empty() != tls.key.empty())
    return absl::InvalidArgumentError("--cert and --key: give both or neither");
  return absl::OkStatus();
}

absl::Status ValidateCredential(bool insecure, const ClientTls& tls) {
  if (absl::Status status = ValidateClientTls(insecure, tls); !status.ok()) return status;
  if (!insecure && tls.invite.empty() && tls.cert.empty() && tls.token_file.empty()) {
    return absl::InvalidArgumentError(
        "--invite, --token_file, or --cert and --key: one is required, it shows the aggregator who "
        "this is; --ca names the CA of its certificate (docs/security.md). --insecure talks "
        "plaintext "
        "instead, on networks that are trusted");
  }
  return absl::OkStatus();
}

}  // namespace distro
