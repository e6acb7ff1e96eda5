#include "common/client/options/client_flags.h"

#include <utility>

namespace distro {

std::vector<Flag> WithClientFlags(std::vector<Flag> own, ChannelOptions* channel) {
  ClientTls* const tls = &channel->tls;
  std::vector<Flag> flags = {
      {.name = "invite",
       .value = &tls->invite,
       .help = "File made by `distroctl invite`: contains the aggregator's address and CA, a name "
               "and its token.",
       .takes = Takes::kFile},
      {.name = "ca",
       .value = &tls->ca,
       .help = "PEM file of the CAs to trust for the aggregator; empty: the system's.",
       .takes = Takes::kFile},
      {.name = "cert",
       .value = &tls->cert,
       .help = "PEM file of this client's certificate, with --key (docs/security.md).",
       .takes = Takes::kFile},
      {.name = "key",
       .value = &tls->key,
       .help = "PEM file of the key of --cert.",
       .takes = Takes::kFile},
      {.name = "token_file",
       .value = &tls->token_file,
       .help = "File with this client's token, read again when it changes; instead of --cert and "
               "--key.",
       .takes = Takes::kFile},
      {.name = "server_name",
       .value = &tls->server_name,
       .help = "Name expected in the aggregator's certificate; empty: the address's host."},
      {.name = "insecure",
       .value = &channel->insecure,
       .help = "Use plaintext, without authentication, instead of the other six: "
               "--invite, --ca, --cert, --key, --token_file, --server_name."}};
  for (Flag& flag : flags) own.push_back(std::move(flag));
  return own;
}

Flag ConnectTimeoutFlag(absl::Duration* timeout) {
  return {.name = "connect_timeout",
          .value = timeout,
          .help =
              "How long to wait for the aggregator's first answer; 0: no limit. After a "
              "first answer it waits without limit."};
}

Flag MirrorsFlag(std::vector<std::string>* mirrors) {
  return {.name = "mirrors",
          .value = mirrors,
          .help =
              "URLs of mirrors to fetch results and the snapshot from, separated by commas, "
              "instead of those that the aggregator names; none: from the aggregator only."};
}

}  // namespace distro
