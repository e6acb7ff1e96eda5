#include "tools/distroctl/credentials.h"

#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/net/security/dev_certificates.h"
#include "common/net/security/token.h"
#include "server/auth/tokens/tokens_file.h"
#include "tools/distroctl/private_file.h"

namespace distro::tools {
namespace {

constexpr absl::Duration kCaValid = absl::Hours(24 * 3650);
constexpr absl::Duration kValid = absl::Hours(24 * 365);
// Certificates start this much earlier, for clocks that are behind.
constexpr absl::Duration kSlack = absl::Hours(1);
constexpr uint64_t kMaxPemBytes = 1 << 20;

class CertFolder {
 public:
  explicit CertFolder(std::string path) : path_(std::move(path)) {}

  absl::Status Write(const std::string& name, const absl::StatusOr<KeyedCertificate>& made) {
    DISTRO_RETURN_IF_ERROR(made.status());
    DISTRO_RETURN_IF_ERROR(WritePrivate(File(name + "-key.pem"), made->key));
    DISTRO_RETURN_IF_ERROR(WriteFileAtomically(File(name + ".pem"), made->cert));
    lines_.push_back(absl::StrCat(File(name + ".pem"), "  ", File(name + "-key.pem")));
    made_.push_back(
        {{"name", name}, {"cert", File(name + ".pem")}, {"key", File(name + "-key.pem")}});
    return absl::OkStatus();
  }
  absl::StatusOr<KeyedCertificate> Ca(absl::Time now) {
    KeyedCertificate ca;
    if (!Exists(File("ca.pem"))) {
      DISTRO_ASSIGN_OR_RETURN(ca, MakeCa({now - kSlack, kCaValid}));
      DISTRO_RETURN_IF_ERROR(Write("ca", ca));
      return ca;
    }
    DISTRO_ASSIGN_OR_RETURN(ca.cert, ReadTextFile(File("ca.pem"), kMaxPemBytes));
    DISTRO_ASSIGN_OR_RETURN(ca.key, ReadTextFile(File("ca-key.pem"), kMaxPemBytes));
    return ca;
  }
  // Two calls that made a CA at once would mix them.
  absl::StatusOr<FileLock> Lock() const { return FileLock::Take(File("ca.pem")); }
  Report Made() const {
    return {.text = absl::StrJoin(lines_, "\n"), .json = {{"certificates", made_}}};
  }

 private:
  std::string File(const std::string& name) const { return absl::StrCat(path_, "/", name); }

  const std::string path_;
  std::vector<std::string> lines_;
  std::vector<nlohmann::json> made_;
};

}  // namespace

absl::StatusOr<Report> MakeCerts(const CertsOptions& options, absl::Time now) {
  if (options.out.empty()) return absl::InvalidArgumentError("--out: is required, a folder");
  if (options.hosts.empty())
    return absl::InvalidArgumentError("--host: is required, the aggregator's name or address");
  for (const std::string& name : options.workers)
    DISTRO_RETURN_IF_ERROR(ValidateName(name, "--worker"));
  DISTRO_RETURN_IF_ERROR(CreateFolders(options.out));
  CertFolder folder(options.out);
  DISTRO_ASSIGN_OR_RETURN(const FileLock lock, folder.Lock());
  DISTRO_ASSIGN_OR_RETURN(const KeyedCertificate ca, folder.Ca(now));
  const Validity validity = {now - kSlack, kSlack + kValid};
  DISTRO_RETURN_IF_ERROR(
      folder.Write("server", IssueServerCertificate(ca, options.hosts, validity)));
  DISTRO_RETURN_IF_ERROR(
      folder.Write("admin", IssueClientCertificate(ca, "admin", "admin", validity)));
  for (const std::string& name : options.workers) {
    DISTRO_RETURN_IF_ERROR(folder.Write(absl::StrCat("worker-", name),
                                        IssueClientCertificate(ca, name, "worker", validity)));
  }
  return folder.Made();
}

Command CertsCommand(const Console* console) {
  const auto options = std::make_shared<CertsOptions>();
  return {
      .name = "certs",
      .summary =
          "Makes a CA for development, and certificates of the aggregator, an admin and workers.",
      .flags = {{.name = "out",
                 .value = &options->out,
                 .help = "Folder to write. Required.",
                 .takes = Takes::kFolder},
                {.name = "host",
                 .value = &options->hosts,
                 .help = "The aggregator's names and addresses. At least one."},
                {.name = "worker",
                 .value = &options->workers,
                 .help = "Workers that get a client certificate."}},
      .help =
          R"(Writes ca.pem, server.pem, admin.pem and worker-NAME.pem, each with its -key.pem (mode 0600). A later call uses
the existing CA, to add workers or to renew certificates (they are valid for a year). The CA's key is stored beside
the certificates: not for production (docs/security.md).

Examples:
  distroctl certs --out tls --host aggregator.example,10.0.0.5 --worker w1,w2
  distroctl certs --out tls --host aggregator.example --worker w3      # later: one more)",
      .run = [options, console]() -> absl::StatusOr<int> {
        return console->Show(MakeCerts(*options, absl::Now()));
      }};
}

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
  // Before the lock, which would be made beside a file that is not there.
  if (const auto text = ReadFile(tokens_file, server::kMaxTokensFileBytes); !text.ok())
    return text.status();
  DISTRO_ASSIGN_OR_RETURN(const FileLock lock, FileLock::Take(tokens_file));
  DISTRO_ASSIGN_OR_RETURN(const std::string text,
                          ReadTextFile(tokens_file, server::kMaxTokensFileBytes));
  DISTRO_RETURN_IF_ERROR(Annotate(server::TokenTable::Parse(text).status(), tokens_file));
  absl::StatusOr<std::string> kept = server::WithoutName(text, name);
  if (!kept.ok()) return Annotate(kept.status(), tokens_file);
  DISTRO_RETURN_IF_ERROR(RewriteKeepingMode(tokens_file, *kept));
  return Report{
      .text = absl::StrCat("revoked the tokens of ", name,
                           ": the aggregator refuses them within a second; an open stream "
                           "continues until it ends (distroctl evict ends it)"),
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
          R"(The file holds a hash, so a lost token cannot be printed again: make another. A name may have several valid lines, so
that tokens can be rotated. The aggregator rereads the file when it changes.

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
      .summary = "Removes a name's tokens from the aggregator's tokens file.",
      .flags = {{.name = "tokens_file",
                 .value = &given->tokens_file,
                 .help = "The aggregator's tokens file. Required.",
                 .takes = Takes::kFile}},
      .help =
          R"(An open stream continues until it ends; `distroctl evict NAME` ends a worker's at once.

Example:
  distroctl token revoke w7 --tokens_file tokens)",
      .run = [given, console]() -> absl::StatusOr<int> {
        return console->Show(RevokeTokens(given->name, given->tokens_file));
      }};
}

}  // namespace distro::tools
