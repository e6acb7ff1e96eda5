#include "server/auth/tokens/tokens_file.h"

#include <openssl/crypto.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utc_time.h"

namespace distro::server {
namespace {

constexpr size_t kMaxTokensOfName = 2;

std::vector<absl::string_view> FieldsOf(absl::string_view line) {
  const absl::string_view stripped = absl::StripAsciiWhitespace(line);
  if (absl::StartsWith(stripped, "#")) return {};
  return absl::StrSplit(stripped, absl::ByAnyChar(" \t"), absl::SkipEmpty());
}

bool IsHash(absl::string_view text) {
  return text.size() == 2 * Sha256Digest().size() &&
         text.find_first_not_of("0123456789abcdefABCDEF") == absl::string_view::npos;
}

absl::Status Bad(absl::string_view why) { return absl::InvalidArgumentError(why); }

}  // namespace

absl::StatusOr<TokenTable> TokenTable::Parse(absl::string_view text) {
  TokenTable table;
  int number = 0;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    const std::vector<absl::string_view> fields = FieldsOf(line);
    if (fields.empty()) continue;
    const std::string where = absl::StrCat("line ", number);
    if (fields.size() != 3 && fields.size() != 4)
      return Annotate(Bad("is not `name role hash`, nor with a time behind it"), where);
    DISTRO_RETURN_IF_ERROR(Annotate(ValidateName(fields[0], "name"), where));
    const std::optional<Role> role = ParseRole(fields[1]);
    if (!role) return Annotate(Bad("the role is none of worker, archiver, viewer, admin"), where);
    if (!IsHash(fields[2]))
      return Annotate(Bad("the hash is not a SHA-256 of 64 hex digits"), where);
    const std::string hash = absl::HexStringToBytes(fields[2]);
    Entry entry = {.owner = {.name = std::string(fields[0]), .role = *role}, .hash = {}};
    if (fields.size() == 4) {
      const std::optional<absl::Time> time = ParseUtcText(fields[3]);
      if (!time) return Annotate(Bad("the time is not one such as 2026-12-24T00:00:00Z"), where);
      entry.owner.expires = *time;
    }
    std::copy(hash.begin(), hash.end(), entry.hash.begin());
    DISTRO_RETURN_IF_ERROR(Annotate(table.Add(std::move(entry)), where));
  }
  return table;
}

absl::Status TokenTable::Add(Entry entry) {
  size_t of_name = 1;
  for (const Entry& other : entries_) {
    if (other.hash == entry.hash) return Bad("the hash stands on an earlier line, too");
    if (other.owner.name != entry.owner.name) continue;
    if (other.owner.role != entry.owner.role) return Bad("the name has another role above");
    if (++of_name > kMaxTokensOfName) return Bad("the name has two tokens above");
  }
  entries_.push_back(std::move(entry));
  return absl::OkStatus();
}

std::optional<TokenOwner> TokenTable::Find(absl::string_view token) const {
  const Sha256Digest hash = Sha256(token);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_)
    if (CRYPTO_memcmp(entry.hash.data(), hash.data(), hash.size()) == 0) found = &entry;
  if (found == nullptr) return std::nullopt;
  return found->owner;
}

std::string TokensLine(absl::string_view name, Role role, absl::string_view token,
                       absl::Time expires) {
  const std::string line = absl::StrCat(name, " ", RoleName(role), " ", ToHex(Sha256(token)));
  if (expires == absl::InfiniteFuture()) return line;
  return absl::StrCat(line, " ", UtcText(expires));
}

absl::StatusOr<std::string> WithoutName(absl::string_view text, absl::string_view name) {
  std::string kept;
  bool found = false;
  while (!text.empty()) {
    const absl::string_view line = text.substr(0, std::min(text.find('\n'), text.size() - 1) + 1);
    text.remove_prefix(line.size());
    const std::vector<absl::string_view> fields = FieldsOf(line);
    if (!fields.empty() && fields[0] == name) {
      found = true;
    } else {
      absl::StrAppend(&kept, line);
    }
  }
  if (!found) return absl::NotFoundError(absl::StrCat(name, ": has no token in the file"));
  return kept;
}

}  // namespace distro::server
