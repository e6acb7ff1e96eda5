#include "tools/distroctl/certs.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/base/file.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/security/dev_certificates.h"

namespace distro::tools {
namespace {

constexpr absl::Duration kCaValid = absl::Hours(24 * 3650);
constexpr absl::Duration kValid = absl::Hours(24 * 365);
// For clocks that are behind.
constexpr absl::Duration kSlack = absl::Hours(1);
constexpr uint64_t kMaxPemBytes = 1 << 20;

// Nobody else ever sees the file: it has its mode before it has bytes and its name.
absl::Status WritePrivate(const std::string& path, const std::string& bytes) {
  const std::string temporary = path + ".tmp";
  unlink(temporary.c_str());
  const int file = open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) return ErrnoToStatus(errno, "create", temporary);
  const absl::Cleanup close_file = [file] { close(file); };
  if (write(file, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()) ||
      fsync(file) != 0 || rename(temporary.c_str(), path.c_str()) != 0) {
    return ErrnoToStatus(errno, "write", path);
  }
  return absl::OkStatus();
}

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
    if (!std::filesystem::exists(File("ca.pem"))) {
      DISTRO_ASSIGN_OR_RETURN(ca, MakeCa({now - kSlack, kCaValid}));
      DISTRO_RETURN_IF_ERROR(Write("ca", ca));
      return ca;
    }
    DISTRO_ASSIGN_OR_RETURN(ca.cert, ReadFile(File("ca.pem"), kMaxPemBytes));
    DISTRO_ASSIGN_OR_RETURN(ca.key, ReadFile(File("ca-key.pem"), kMaxPemBytes));
    return ca;
  }
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
          R"(Writes ca.pem, server.pem, admin.pem and worker-NAME.pem, each with its -key.pem (mode 0600). Called again it goes on
with the CA that is there: so workers are added, and certificates renewed (they last a year). The CA's key lies beside
what it signs: not for production (docs/security.md).

Examples:
  distroctl certs --out tls --host aggregator.example,10.0.0.5 --worker w1,w2
  distroctl certs --out tls --host aggregator.example --worker w3      # later: one more)",
      .run = [options, console]() -> absl::StatusOr<int> {
        return console->Show(MakeCerts(*options, absl::Now()));
      }};
}

}  // namespace distro::tools
