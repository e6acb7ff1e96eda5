#include "tools/archiver/exit_code.h"

#include "common/base/reason.h"
#include "common/client/probe/connection_fault.h"

namespace distro::tools {

ArchiverExitCode ArchiverExitCodeFor(const absl::Status& status) {
  if (status.ok()) return kArchiverDone;
  const std::string reason = ReasonOf(status);
  if (reason == "diverged" || reason == "pruned") return kArchiverDiverged;
  if (reason == "other_run") return kArchiverRefused;
  if (reason == "version") return kArchiverVersion;
  if (const auto code = ConnectionExitCode(status)) return static_cast<ArchiverExitCode>(*code);
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
      return kArchiverUsage;
    case absl::StatusCode::kFailedPrecondition:
      return kArchiverRefused;
    case absl::StatusCode::kUnauthenticated:
      return kArchiverCredentials;
    case absl::StatusCode::kPermissionDenied:  // without a reason it is that of a file
      return reason.empty() ? kArchiverFailed : kArchiverCredentials;
    default:
      return kArchiverFailed;
  }
}

std::string ArchiverRemedyFor(ArchiverExitCode code) {
  switch (code) {
    case kArchiverRefused:
      return "use another --data_dir for another run; a folder can have one archiver";
    case kArchiverDiverged:
      return "start it again; if that does not help, verify the aggregator's folder: distroctl log "
             "replay";
    case kArchiverVersion:
      return "use the version that wrote the folder or created the run, or a later one";
    case kArchiverCredentials:
      return "check the certificate or token, and that its role is archiver";
    default:
      return IsConnectionExitCode(code) ? "see the reason, and docs/troubleshooting.md" : "";
  }
}

}  // namespace distro::tools
