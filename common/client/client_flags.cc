#include "common/client/client_flags.h"

#include "absl/flags/flag.h"

ABSL_FLAG(std::string, ca, "", distro::kCaHelp);
ABSL_FLAG(std::string, cert, "", distro::kCertHelp);
ABSL_FLAG(std::string, key, "", distro::kKeyHelp);
ABSL_FLAG(std::string, token_file, "", distro::kTokenFileHelp);
ABSL_FLAG(std::string, server_name, "", distro::kServerNameHelp);
ABSL_FLAG(bool, insecure, false, distro::kInsecureHelp);

namespace distro {

ChannelOptions ChannelOptionsFromFlags(const std::string& aggregator) {
  return {.aggregator = aggregator,
          .insecure = absl::GetFlag(FLAGS_insecure),
          .tls = {.ca = absl::GetFlag(FLAGS_ca),
                  .cert = absl::GetFlag(FLAGS_cert),
                  .key = absl::GetFlag(FLAGS_key),
                  .token_file = absl::GetFlag(FLAGS_token_file),
                  .server_name = absl::GetFlag(FLAGS_server_name)}};
}

}  // namespace distro
