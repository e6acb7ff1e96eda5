#include "common/client/client_flags.h"

#include <utility>

#include "absl/flags/flag.h"

ABSL_FLAG(std::string, ca, "", distro::kCaHelp);
ABSL_FLAG(std::string, cert, "", distro::kCertHelp);
ABSL_FLAG(std::string, key, "", distro::kKeyHelp);
ABSL_FLAG(std::string, token_file, "", distro::kTokenFileHelp);
ABSL_FLAG(std::string, server_name, "", distro::kServerNameHelp);
ABSL_FLAG(bool, insecure, false, distro::kInsecureHelp);

namespace distro {

std::vector<Flag> WithClientFlags(std::vector<Flag> own, ChannelOptions* channel) {
  ClientTls* const tls = &channel->tls;
  for (Flag& flag : std::vector<Flag>{
           {.name = "ca", .value = &tls->ca, .help = kCaHelp, .takes = Takes::kFile},
           {.name = "cert", .value = &tls->cert, .help = kCertHelp, .takes = Takes::kFile},
           {.name = "key", .value = &tls->key, .help = kKeyHelp, .takes = Takes::kFile},
           {.name = "token_file",
           .value = &tls->token_file,
           .help = kTokenFileHelp,
           .takes = Takes::kFile},
           {.name = "server_name", .value = &tls->server_name, .help = kServerNameHelp},
           {.name = "insecure", .value = &channel->insecure, .help = kInsecureHelp}})
    own.push_back(std::move(flag));
  return own;
}

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
