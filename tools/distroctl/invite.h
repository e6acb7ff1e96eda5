// `distroctl invite`: one file for one machine that is to take part in a run (docs/invites.md).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct InviteOptions {
  std::string name = {};  // whose it is. Required.
  std::string role = "worker";
  std::string aggregator = {};   // host:port by which that machine reaches it. Required.
  std::string tokens_file = {};  // the aggregator's; gets the token's line. Required.
  std::string ca = {};   // PEM file of the CA of its certificate; empty: one of the system's
  std::string run = {};  // run.json, whose name and data the invite is for; empty: any
  absl::Duration valid = absl::InfiniteDuration();
  std::string out = {};  // empty: NAME.invite
  bool replace = false;  // the name's earlier tokens are revoked, the file is written anew
};

// Makes a token, adds its line to the tokens file, and writes the invite with mode 0600.
// InvalidArgument: an option, a file that is damaged, or a name with two tokens or another role.
// AlreadyExists: the file is there, and `replace` is not asked for; nothing has changed then.
absl::StatusOr<Report> MakeInvite(const InviteOptions& options, absl::Time now);

Command InviteCommand(const Console* console);

}  // namespace distro::tools
