#include "worker/exit_code.h"

#include <csignal>

#include "absl/strings/match.h"

namespace distro::worker {

ExitCode ExitCodeFor(const absl::Status& status, int signal) {
  if (status.ok()) return kExitDone;
  if (signal == SIGINT) return kExitInterrupted;
  if (signal == SIGTERM) return kExitTerminated;
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
      return kExitUsage;
    case absl::StatusCode::kFailedPrecondition:
      return absl::StrContains(status.message(), "diverged") ? kExitDiverged : kExitRefused;
    case absl::StatusCode::kAborted:
      return kExitReplaced;
    default:
      return kExitFailed;
  }
}

}  // namespace distro::worker
