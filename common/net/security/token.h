// Bearer tokens, which authenticate a client without a certificate (docs/security.md): 32 random
// bytes as base64url without padding, 43 characters. Thread-safe. No gRPC here.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace distro {

// Value of the metadata `authorization`, before the token.
inline constexpr absl::string_view kBearer = "Bearer ";

// Creates a token from the system's random numbers. Internal: they are not available.
absl::StatusOr<std::string> NewToken();

// 43 characters of base64url.
bool IsToken(absl::string_view text);

// Reads a token from a file that contains nothing else but surrounding white space.
// InvalidArgument: other content; the message names the file but none of its content. Otherwise as
// ReadFile.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

}  // namespace distro
