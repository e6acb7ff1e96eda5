#include "server/options/options.h"

#include "absl/strings/str_cat.h"
#include "common/base/address.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/net/http/http_url.h"

namespace distro::server {

namespace {

absl::Status CheckCredentials(const AggregatorOptions& options) {
  const bool own = !options.cert.empty() && !options.key.empty();
  const bool clients = !options.ca.empty() || !options.tokens_file.empty();
  if (options.insecure) {
    if (options.cert.empty() && options.key.empty() && !clients) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "--insecure: contradicts --cert, --key, --ca and --tokens_file: plaintext uses none of "
        "them; give one or the other");
  }
  if (!own) {
    return absl::InvalidArgumentError(
        "--cert and --key: are required, the aggregator's certificate and its key; `distroctl "
        "certs` "
        "makes them for development (docs/security.md). --insecure talks plaintext instead and "
        "authenticates nobody, on networks that are trusted");
  }
  if (!clients) {
    return absl::InvalidArgumentError(
        "--tokens_file or --ca: one is required, without it no client can authenticate: the tokens "
        "that are valid (`distroctl token new`), or the CA of client certificates");
  }
  return absl::OkStatus();
}

absl::Status OutOfOrder(absl::string_view flag, absl::Duration value, absl::string_view other,
                        absl::Duration other_value, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(flag, ": ", absl::FormatDuration(value),
                                                 " is not above ", other, " (",
                                                 absl::FormatDuration(other_value), "): ", why));
}

// The order required by docs/protocol.md, "Times": heartbeat_interval < suspect_after < lease.
absl::Status CheckTimes(const AggregatorOptions& options) {
  const absl::Duration interval = options.heartbeat_interval;
  if (interval < absl::Milliseconds(10) || interval > absl::Hours(1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--heartbeat_interval: ", absl::FormatDuration(interval), " is outside 10ms to 1h"));
  }
  const absl::Duration suspect = options.SuspectAfter();
  if (suspect <= interval) {
    return OutOfOrder("--suspect_after", suspect, "--heartbeat_interval", interval,
                      "a worker would be suspect between two heartbeats");
  }
  if (options.lease <= suspect) {
    return OutOfOrder("--lease", options.lease, "--suspect_after", suspect,
                      "a lost heartbeat must not end a session");
  }
  if (options.lease > absl::Hours(24)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--lease: ", absl::FormatDuration(options.lease), " is above 24h"));
  }
  if (options.drain_grace < absl::ZeroDuration() || options.drain_grace > absl::Hours(24)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--drain_grace: ", absl::FormatDuration(options.drain_grace), " is outside 0 to 24h"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status AggregatorOptions::Validate() const {
  if (data_dir.empty())
    return absl::InvalidArgumentError("--data_dir: is required, a folder for the run");
  if (run.empty() != model.empty()) {
    return absl::InvalidArgumentError("--run and --model: give both to create a run, or neither");
  }
  if (standby && log_url.empty())
    return absl::InvalidArgumentError("--standby: needs --log, the bucket that both share");
  if (takeover_after < absl::Seconds(1) || takeover_after > absl::Hours(1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--takeover_after: ", absl::FormatDuration(takeover_after), " is outside 1s to 1h"));
  }
  DISTRO_RETURN_IF_ERROR(limits.Validate());
  DISTRO_RETURN_IF_ERROR(CheckCredentials(*this));
  DISTRO_RETURN_IF_ERROR(Annotate(ParseHostPort(listen).status(), "--listen"));
  DISTRO_RETURN_IF_ERROR(Annotate(ParseHostPort(http).status(), "--http"));
  if (!objects.empty())
    DISTRO_RETURN_IF_ERROR(Annotate(ParseHostPort(objects).status(), "--objects"));
  if (objects.empty() && !mirrors.empty()) {
    return absl::InvalidArgumentError(
        "--mirrors: needs --objects, the address from which the mirrors get what they serve");
  }
  for (const std::string& url : mirrors)
    DISTRO_RETURN_IF_ERROR(Annotate(ParseHttpUrl(url).status(), "--mirrors"));
  return CheckTimes(*this);
}

}  // namespace distro::server
