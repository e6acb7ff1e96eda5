#include "tools/distroctl/token.h"

#include <sys/stat.h>

#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/rpc/token.h"
#include "server/auth/tokens_file.h"

namespace distro::tools {

absl::StatusOr<std::string> MakeToken(const std::string& name, const std::string& role) {
  DISTRO_RETURN_IF_ERROR(ValidateName(name, "NAME"));
  const std::optional<server::Role> known = server::ParseRole(role);
  if (!known)
    return absl::InvalidArgumentError("--role: is required: worker, archiver, viewer or admin");
  DISTRO_ASSIGN_OR_RETURN(const std::string token, NewToken());
  return absl::StrCat("token ", token, "\nline ", server::TokensLine(name, *known, token));
}

absl::StatusOr<std::string> RevokeTokens(const std::string& name, const std::string& tokens_file) {
  if (tokens_file.empty())
    return absl::InvalidArgumentError("--tokens_file: is required, the aggregator's tokens file");
  DISTRO_ASSIGN_OR_RETURN(const std::string text,
                          ReadFile(tokens_file, server::kMaxTokensFileBytes));
  DISTRO_RETURN_IF_ERROR(Annotate(server::TokenTable::Parse(text).status(), tokens_file));
  absl::StatusOr<std::string> kept = server::WithoutName(text, name);
  if (!kept.ok()) return Annotate(kept.status(), tokens_file);
  struct stat before = {};
  if (stat(tokens_file.c_str(), &before) != 0) return ErrnoToStatus(errno, "stat", tokens_file);
  DISTRO_RETURN_IF_ERROR(WriteFileAtomically(tokens_file, *kept));
  if (chmod(tokens_file.c_str(), before.st_mode & 07777) != 0)
    return ErrnoToStatus(errno, "chmod", tokens_file);
  return absl::StrCat(
      "revoked the tokens of ", name,
      ": the aggregator refuses them within a second; a stream that is open goes on "
      "until it ends (distroctl evict ends it)");
}

}  // namespace distro::tools
