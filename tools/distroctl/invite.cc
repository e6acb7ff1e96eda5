#include "tools/distroctl/invite.h"

#include <unistd.h>

#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utc_time.h"
#include "common/client/options/invite.h"
#include "common/net/security/tls_files.h"
#include "common/net/security/token.h"
#include "common/run/run_config.h"
#include "server/auth/tokens/tokens_file.h"
#include "tools/distroctl/private_file.h"

namespace distro::tools {
namespace {

constexpr uint64_t kMaxRunBytes = 1 << 20;

absl::Status Check(const InviteOptions& options) {
  DISTRO_RETURN_IF_ERROR(ValidateName(options.name, "NAME"));
  if (options.aggregator.empty()) {
    return absl::InvalidArgumentError(
        "--aggregator: is required, HOST:PORT by which the machine reaches the aggregator");
  }
  if (options.tokens_file.empty())
    return absl::InvalidArgumentError("--tokens_file: is required, the aggregator's tokens file");
  if (options.valid <= absl::ZeroDuration())
    return absl::InvalidArgumentError(
        absl::StrCat("--valid: ", absl::FormatDuration(options.valid), " is not above 0"));
  return absl::OkStatus();
}

absl::Status CheckOut(const InviteOptions& options, const std::string& out) {
  if (options.replace || !Exists(out)) return absl::OkStatus();
  return absl::AlreadyExistsError(
      absl::StrCat(out, ": exists: --replace makes a new one and revokes the token in it"));
}

// The tokens file with one more line.
absl::StatusOr<std::string> WithToken(const InviteOptions& options, server::Role role,
                                      const Invite& invite) {
  absl::StatusOr<std::string> text = ReadTextFile(options.tokens_file, server::kMaxTokensFileBytes);
  if (absl::IsNotFound(text.status())) text = std::string();
  DISTRO_RETURN_IF_ERROR(text.status());
  if (options.replace) {
    absl::StatusOr<std::string> kept = server::WithoutName(*text, options.name);
    if (kept.ok()) text = *std::move(kept);
  }
  if (!text->empty() && !absl::EndsWith(*text, "\n")) text->push_back('\n');
  absl::StrAppend(&*text, server::TokensLine(invite.name, role, invite.token, invite.expires),
                  "\n");
  DISTRO_RETURN_IF_ERROR(Annotate(server::TokenTable::Parse(*text).status(), options.tokens_file));
  return text;
}

absl::StatusOr<Invite> Fill(const InviteOptions& options, absl::Time now) {
  Invite invite = {.aggregator = options.aggregator, .name = options.name, .role = options.role};
  DISTRO_ASSIGN_OR_RETURN(invite.token, NewToken());
  if (options.valid != absl::InfiniteDuration())
    invite.expires = absl::FromUnixSeconds(absl::ToUnixSeconds(now + options.valid));
  if (!options.ca.empty()) {
    DISTRO_RETURN_IF_ERROR(
        Annotate(ReadTlsFiles({options.ca, "", ""}, TlsSide::kClient).status(), "--ca"));
    DISTRO_ASSIGN_OR_RETURN(invite.ca, ReadTextFile(options.ca, kMaxInviteBytes / 2));
    invite.ca.erase(0, invite.ca.find(kBeginCertificate));
  }
  if (options.run.empty()) return invite;
  DISTRO_ASSIGN_OR_RETURN(const std::string json, ReadTextFile(options.run, kMaxRunBytes));
  const absl::StatusOr<v1::RunConfig> config = ParseRunConfig(json);
  if (!config.ok()) return Annotate(config.status(), options.run);
  invite.run = config->name();
  if (config->data_fingerprint() != kAnyData) invite.data_fingerprint = config->data_fingerprint();
  return invite;
}

std::string Program(const std::string& role) {
  if (role == "worker") return "distro-worker --invite FILE --data DATA --state_dir DIR";
  if (role == "archiver") return "distro-archiver --invite FILE --data_dir DIR";
  return "distroctl ... --invite FILE";
}

}  // namespace

absl::StatusOr<Report> MakeInvite(const InviteOptions& options, absl::Time now) {
  const std::string out = options.out.empty() ? options.name + ".invite" : options.out;
  DISTRO_RETURN_IF_ERROR(Check(options));
  DISTRO_RETURN_IF_ERROR(CheckOut(options, out));
  const std::optional<server::Role> role = server::ParseRole(options.role);
  if (!role)
    return absl::InvalidArgumentError(
        absl::StrCat("--role: ", options.role, " is none of worker, archiver, viewer, admin"));
  DISTRO_ASSIGN_OR_RETURN(const Invite invite, Fill(options, now));
  const std::string text = InviteText(invite);
  DISTRO_RETURN_IF_ERROR(Annotate(ParseInvite(text).status(), "the invite"));
  DISTRO_ASSIGN_OR_RETURN(const FileLock lock, FileLock::Take(options.tokens_file));
  DISTRO_RETURN_IF_ERROR(CheckOut(options, out));  // by another call in the meantime
  DISTRO_ASSIGN_OR_RETURN(const std::string tokens, WithToken(options, *role, invite));
  DISTRO_RETURN_IF_ERROR(WritePrivate(out, text));
  if (const absl::Status status = RewriteKeepingMode(options.tokens_file, tokens); !status.ok()) {
    unlink(out.c_str());  // nobody could know its token
    return status;
  }
  const std::string until = invite.expires == absl::InfiniteFuture()
                                ? "until it is revoked"
                                : absl::StrCat("until ", DateText(invite.expires));
  return Report{.text = absl::StrCat("wrote ", out, ": ", options.role, " ", options.name, " at ",
                                     options.aggregator, ", valid ", until,
                                     ". It is secret. There: ", Program(options.role)),
                .json = {{"file", out}, {"name", options.name}, {"role", options.role}}};
}

Command InviteCommand(const Console* console) {
  const auto o = std::make_shared<InviteOptions>();
  return {
      .name = "invite",
      .arguments = {{"NAME", &o->name}},
      .summary = "Makes one file with which a machine joins a run: address, CA, token, name.",
      .flags = {{.name = "aggregator",
                 .value = &o->aggregator,
                 .help = "HOST:PORT at which that machine reaches the aggregator. Required."},
                {.name = "tokens_file",
                 .value = &o->tokens_file,
                 .help = "The aggregator's tokens file, which gets a line. Required.",
                 .takes = Takes::kFile},
                {.name = "ca",
                 .value = &o->ca,
                 .help = "PEM file of the CA of the aggregator's certificate; empty: the system's.",
                 .takes = Takes::kFile},
                {.name = "role",
                 .value = &o->role,
                 .help = "What its owner may do (docs/security.md).",
                 .choices = {"worker", "archiver", "viewer", "admin"}},
                {.name = "run",
                 .value = &o->run,
                 .help = "run.json of the run: a worker then refuses another run, and data other "
                         "than its data_fingerprint, if it has one.",
                 .takes = Takes::kFile},
                {.name = "valid",
                 .value = &o->valid,
                 .help = "Time until the invite expires, such as 720h. Default: never."},
                {.name = "replace",
                 .value = &o->replace,
                 .help = "Revoke the name's earlier tokens, and overwrite an existing invite."},
                {.name = "out",
                 .value = &o->out,
                 .help = "File to write. Default: NAME.invite.",
                 .takes = Takes::kFile}},
      .help =
          R"(Keep the file secret: it contains a token. The aggregator stores only a hash, and rereads its tokens file when it changes.
`distroctl token revoke NAME` makes it void.

Example:
  distroctl invite w2 --aggregator aggregator.example:7700 --ca tls/ca.pem --tokens_file tokens
  distro-worker --invite w2.invite --data text.txt --state_dir state      # on the other machine)",
      .run = [o, console]() -> absl::StatusOr<int> {
        return console->Show(MakeInvite(*o, absl::Now()));
      }};
}

}  // namespace distro::tools
