// Tokens: what shows an aggregator who calls, where no client certificate does (docs/security.md).
// 32 random bytes as base64url without padding, 43 characters. Thread-safe. No gRPC here.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace distro {

// Value of the metadata `authorization`, before the token.
inline constexpr absl::string_view kBearer = "Bearer ";

// A new one, from the system's random numbers. Internal: there are none.
absl::StatusOr<std::string> NewToken();

// 43 characters of base64url.
bool IsToken(absl::string_view text);

// The token in a file that holds nothing else but white space around it. InvalidArgument: something
// else; the message names the file and holds nothing of its contents. Otherwise as ReadFile.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

}  // namespace distro
