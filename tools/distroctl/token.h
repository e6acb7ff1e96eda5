// `distroctl token new` and `token revoke` (docs/security.md).
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

// A new token, and its line for the tokens file: "token TOKEN\nline NAME ROLE HASH". It is kept
// nowhere. InvalidArgument: the name or the role.
absl::StatusOr<Report> MakeToken(const std::string& name, const std::string& role);

// Drops all tokens of a name from a tokens file, which keeps its mode. InvalidArgument: no file is
// named, or it is damaged. NotFound: the name has none, or there is no file.
absl::StatusOr<Report> RevokeTokens(const std::string& name, const std::string& tokens_file);

Command TokenNewCommand(const Console* console);
Command TokenRevokeCommand(const Console* console);

}  // namespace distro::tools
