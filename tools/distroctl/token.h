// `distroctl token new` and `token revoke` (docs/security.md).
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace distro::tools {

// A new token, and its line for the tokens file: "token TOKEN\nline NAME ROLE HASH". It is kept nowhere.
// InvalidArgument: the name or the role.
absl::StatusOr<std::string> MakeToken(const std::string& name, const std::string& role);

// Drops all tokens of a name from a tokens file, which keeps its mode. InvalidArgument: no file is named, or it is
// damaged. NotFound: the name has none, or there is no file.
absl::StatusOr<std::string> RevokeTokens(const std::string& name, const std::string& tokens_file);

}  // namespace distro::tools
