#include "common/client/options/client_flags.h"

#include <utility>

namespace distro {

std::vector<Flag> WithClientFlags(std::vector<Flag> own, ChannelOptions* channel) {
  ClientTls* const tls = &channel->tls;
  std::vector<Flag> flags = {
      {.name = "invite",
       .value = &tls->invite,
       .help = "File of `distroctl invite`: has the aggregator's address, CA and token, and whose "
               "it is.",
       .takes = Takes::kFile},
      {.name = "ca",
       .value = &tls->ca,
       .help = "PEM file of the CAs of the aggregator's certificate; empty: the system's.",
       .takes = Takes::kFile},
      {.name = "cert",
       .value = &tls->cert,
       .help = "PEM file of the own certificate, with --key (docs/security.md).",
       .takes = Takes::kFile},
      {.name = "key",
       .value = &tls->key,
       .help = "PEM file of the key of --cert.",
       .takes = Takes::kFile},
      {.name = "token_file",
       .value = &tls->token_file,
       .help = "File with the own token, read at each call; instead of --cert and --key.",
       .takes = Takes::kFile},
      {.name = "server_name",
       .value = &tls->server_name,
       .help = "Name that the aggregator's certificate has; empty: the address's host."},
      {.name = "insecure",
       .value = &channel->insecure,
       .help = "Talk plaintext, which shows nobody who this is, instead of the other six: "
               "--invite, --ca, --cert, --key, --token_file, --server_name."}};
  for (Flag& flag : flags) own.push_back(std::move(flag));
  return own;
}

Flag ConnectTimeoutFlag(absl::Duration* timeout) {
  return {.name = "connect_timeout",
          .value = timeout,
          .help =
              "How long to look for an aggregator that answers, before the first answer; 0: for "
              "ever. An aggregator that was reached once is always waited for."};
}

}  // namespace distro
