#include "server/options.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"

namespace distro::server {

absl::StatusOr<std::pair<std::string, int>> SplitAddress(absl::string_view address) {
  const size_t colon = address.rfind(':');
  int port = -1;
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(address.substr(colon + 1), &port) || port < 0 || port > 65535) {
    return absl::InvalidArgumentError(
        absl::StrCat(address, " is not host:port with a port of 0 to 65535"));
  }
  absl::string_view host = address.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return std::make_pair(std::string(host), port);
}

absl::Status AggregatorOptions::Validate() const {
  if (data_dir.empty())
    return absl::InvalidArgumentError("--data_dir: is required, a folder for the run");
  if (run.empty() != model.empty()) {
    return absl::InvalidArgumentError("--run and --model: give both to create a run, or neither");
  }
  if (!insecure) {
    return absl::InvalidArgumentError(
        "--insecure: is required: this version has no TLS yet, all traffic is plaintext; use it on "
        "trusted networks");
  }
  DISTRO_RETURN_IF_ERROR(limits.Validate());
  DISTRO_RETURN_IF_ERROR(Annotate(SplitAddress(listen).status(), "--listen"));
  DISTRO_RETURN_IF_ERROR(Annotate(SplitAddress(http).status(), "--http"));
  if (heartbeat_interval < absl::Milliseconds(10) || heartbeat_interval > absl::Hours(1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--heartbeat_interval: ", absl::FormatDuration(heartbeat_interval),
                     " is outside 10ms to 1h"));
  }
  if (lease < 3 * heartbeat_interval || lease > absl::Hours(24)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--lease: ", absl::FormatDuration(lease), " is below three times --heartbeat_interval (",
        absl::FormatDuration(heartbeat_interval),
        ") or above 24h: a lost heartbeat must not end a session"));
  }
  return absl::OkStatus();
}

}  // namespace distro::server
