#include "common/client/options/channel_options.h"

namespace distro {

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
  if (tls.cert.empty() && tls.token_file.empty()) {
    return absl::InvalidArgumentError(
        "--invite, --token_file, or --cert and --key: one is required, it shows the aggregator who "
        "this is; --ca names the CA of its certificate (docs/security.md). --insecure talks "
        "plaintext "
        "instead, on networks that are trusted");
  }
  return absl::OkStatus();
}

}  // namespace distro
