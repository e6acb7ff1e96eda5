// The tokens file: the hashes of the valid tokens and their owners (docs/security.md).
//
//   name role sha256-of-the-token-in-hex [until]
//
// `until` is the time at which the token expires, such as 2026-12-24T00:00:00Z; without it, it
// never does. One line per token, at most two per name (for rotation), both with the same role.
// Blank lines and lines that begin with # are ignored. Pure functions and a plain value.
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

// Larger files are refused. With 64 bytes and a name per line, this is about 10 000 tokens.
inline constexpr uint64_t kMaxTokensFileBytes = 1 << 20;

struct TokenOwner {
  std::string name;
  Role role = Role::kViewer;
  absl::Time expires = absl::InfiniteFuture();
};

class TokenTable {
 public:
  // InvalidArgument names the line: not three or four fields, an invalid name, role, hash (64
  // hex digits) or time, a name with two roles or more than two tokens, a repeated hash.
  static absl::StatusOr<TokenTable> Parse(absl::string_view text);

  // The token's owner, even if the token has expired: the caller must check. Takes constant time:
  // compares all lines, each in constant time.
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

// `text` without the lines of `name`; other bytes do not change. NotFound: there is no such line.
absl::StatusOr<std::string> WithoutName(absl::string_view text, absl::string_view name);

}  // namespace distro::server
