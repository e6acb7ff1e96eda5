#include "common/client/options/channel_options.h"

namespace distro {

absl::Status ValidateClientTls(bool insecure, const ClientTls& tls) {
  if (insecure) {
    if (tls == ClientTls()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        "--insecure: contradicts --ca, --cert, --key, --token_file and --server_name: plaintext "
        "uses none of them; give one or the other");
  }
  if (tls.cert.empty() != tls.key.empty())
    return absl::InvalidArgumentError("--cert and --key: give both or neither");
  if (tls.cert.empty() && tls.token_file.empty()) {
    return absl::InvalidArgumentError(
        "--token_file, or --cert and --key: one is required, it shows the aggregator who this is; "
        "--ca names the CA of its certificate (docs/security.md). --insecure talks plaintext "
        "instead, on networks that are trusted");
  }
  return absl::OkStatus();
}

}  // namespace distro
