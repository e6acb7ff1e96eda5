// The tokens file: whose tokens are valid, without the tokens (docs/security.md).
//
//   name role sha256-of-the-token-in-hex [until]
//
// `until` is the time up to which the token is valid, such as 2026-12-24T00:00:00Z; without it, it
// always is.
// A line a token, at most two a name (the old and the new one of a rotation), both with the same
// role; blank lines and lines that begin with # are passed over. Pure functions and a value; copy
// freely, share when const.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/checksum.h"
#include "server/auth/tokens/roles.h"

namespace distro::server {

// Larger files are refused: 64 bytes and a name a line make about 10 000 tokens.
inline constexpr uint64_t kMaxTokensFileBytes = 1 << 20;

struct TokenOwner {
  std::string name;
  Role role = Role::kViewer;
  absl::Time expires = absl::InfiniteFuture();
};

class TokenTable {
 public:
  // InvalidArgument names the line: neither three fields nor four, no name, no role, no hash of 64
  // lower-case hex digits, no time, a name with two roles or more than two tokens, a hash that
  // stands twice.
  static absl::StatusOr<TokenTable> Parse(absl::string_view text);

  // Whose token it is, or was: whether it has expired is the caller's to see. Takes the same time
  // for each token: all lines are compared, each in constant time.
  std::optional<TokenOwner> Find(absl::string_view token) const;

  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    TokenOwner owner;
    Sha256Digest hash;
  };
  absl::Status Add(Entry entry);

  std::vector<Entry> entries_;
};

// The file's line for a token, without its newline. Requires a valid name.
std::string TokensLine(absl::string_view name, Role role, absl::string_view token,
                       absl::Time expires = absl::InfiniteFuture());

// `text` without the lines of `name`; all else stays byte for byte. NotFound: there is none.
absl::StatusOr<std::string> WithoutName(absl::string_view text, absl::string_view name);

}  // namespace distro::server
