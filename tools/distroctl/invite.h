// `distroctl invite`: makes one file for one machine that will join a run (docs/invites.md).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct InviteOptions {
  std::string name = {};  // the machine's name in the run. Required.
  std::string role = "worker";
  std::string aggregator = {};   // host:port at which that machine reaches it. Required.
  std::string tokens_file = {};  // the aggregator's; gets the token's line. Required.
  std::string ca = {};           // PEM file of the aggregator's CA; empty: a CA of the system
  std::string run = {};          // run.json, whose name and data the invite is for; empty: any
  absl::Duration valid = absl::InfiniteDuration();
  std::string out = {};  // empty: NAME.invite
  bool replace = false;  // revoke the name's earlier tokens and overwrite the file
};

// Makes a token, adds its line to the tokens file, and writes the invite with mode 0600.
// InvalidArgument: an option, a damaged file, or a name with two tokens or another role.
// AlreadyExists: the file exists and `replace` is not set; nothing was changed.
absl::StatusOr<Report> MakeInvite(const InviteOptions& options, absl::Time now);

Command InviteCommand(const Console* console);

}  // namespace distro::tools
