#include "tools/distroctl/token.h"

#include <sys/stat.h>

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/security/token.h"
#include "server/auth/tokens_file.h"

namespace distro::tools {

absl::StatusOr<Report> MakeToken(const std::string& name, const std::string& role) {
  DISTRO_RETURN_IF_ERROR(ValidateName(name, "NAME"));
  const std::optional<server::Role> known = server::ParseRole(role);
  if (!known)
    return absl::InvalidArgumentError("--role: is required: worker, archiver, viewer or admin");
  DISTRO_ASSIGN_OR_RETURN(const std::string token, NewToken());
  const std::string line = server::TokensLine(name, *known, token);
  return Report{.text = absl::StrCat("token ", token, "\nline ", line),
                .json = {{"token", token}, {"line", line}}};
}

absl::StatusOr<Report> RevokeTokens(const std::string& name, const std::string& tokens_file) {
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
  return Report{
      .text = absl::StrCat("revoked the tokens of ", name,
                           ": the aggregator refuses them within a second; a stream that is open "
                           "goes on until it ends (distroctl evict ends it)"),
      .json = {{"name", name}, {"revoked", true}}};
}

Command TokenNewCommand(const Console* console) {
  struct Given {
    std::string name;
    std::string role;
  };
  const auto given = std::make_shared<Given>();
  return {
      .name = "token new",
      .arguments = {{"NAME", &given->name}},
      .summary = "Prints a new token, once, and its line for the aggregator's tokens file.",
      .flags = {{.name = "role",
                 .value = &given->role,
                 .help = "What its owner may do (docs/security.md). Required.",
                 .choices = {"worker", "archiver", "viewer", "admin"}}},
      .help =
          R"(The file holds a hash, so a lost token cannot be printed again: make another. Several lines of a name are valid at
once, which is how tokens are rotated. The aggregator reads the file again when it changes.

Example:
  distroctl token new w7 --role worker)",
      .run = [given, console]() -> absl::StatusOr<int> {
        return console->Show(MakeToken(given->name, given->role));
      }};
}

Command TokenRevokeCommand(const Console* console) {
  struct Given {
    std::string name;
    std::string tokens_file;
  };
  const auto given = std::make_shared<Given>();
  return {
      .name = "token revoke",
      .arguments = {{"NAME", &given->name}},
      .summary = "Drops the tokens of a name from the aggregator's tokens file.",
      .flags = {{.name = "tokens_file",
                 .value = &given->tokens_file,
                 .help = "The aggregator's tokens file. Required.",
                 .takes = Takes::kFile}},
      .help =
          R"(A stream that is open goes on until it ends; `distroctl evict NAME` ends a worker's at once.

Example:
  distroctl token revoke w7 --tokens_file tokens)",
      .run = [given, console]() -> absl::StatusOr<int> {
        return console->Show(RevokeTokens(given->name, given->tokens_file));
      }};
}

}  // namespace distro::tools
