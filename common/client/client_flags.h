// The flags that say how a client talks with its aggregator (docs/security.md): the same six in
// distro-worker, distro-archiver and distroctl, with the same words. ChannelOptionsFromFlags reads
// absl's flags, which are there in a program that links this file; distroctl's own parser takes the
// words alone.
#pragma once

#include <string>
#include <vector>

#include "common/client/channel_options.h"
#include "common/process/flag.h"

namespace distro {

inline constexpr char kCaHelp[] =
    "PEM file of the CAs of the aggregator's certificate; empty: the system's.";
inline constexpr char kCertHelp[] =
    "PEM file of the own certificate, with --key (docs/security.md).";
inline constexpr char kKeyHelp[] = "PEM file of the key of --cert.";
inline constexpr char kTokenFileHelp[] =
    "File with the own token, read at each call; instead of --cert and --key.";
inline constexpr char kServerNameHelp[] =
    "Name that the aggregator's certificate has; empty: the address's host.";
inline constexpr char kInsecureHelp[] =
    "Talk plaintext, which shows nobody who this is, instead of the other five: --ca, --cert, "
    "--key, --token_file, --server_name.";

// For the end of ProgramHelp::flag_sources.
inline constexpr char kClientFlagsSource[] = "client/client_flags.cc";

// `own`, and behind them the six, which set all of `channel` but its address; it is borrowed.
std::vector<Flag> WithClientFlags(std::vector<Flag> own, ChannelOptions* channel);

// Not validated. `aggregator` as in ChannelOptions.
ChannelOptions ChannelOptionsFromFlags(const std::string& aggregator);

}  // namespace distro
