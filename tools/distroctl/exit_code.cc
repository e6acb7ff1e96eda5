#include "tools/distroctl/exit_code.h"

namespace distro::tools {

ExitCode ExitCodeFor(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return kExitDone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
      return kExitUsage;
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return kExitRefused;
    case absl::StatusCode::kDataLoss:
      return kExitDamaged;
    case absl::StatusCode::kAborted:
      return kExitFault;
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return kExitNoAnswer;
    default:
      return kExitFailed;
  }
}

const char* ExitCodeHelp() {
  return R"(Exit codes:
  0  done
  1  failure: a disk, or something that has no number below
  2  a flag, file or configuration must be mended; the message names it
  3  refused: by the aggregator, for the credentials, or since the target is there already
  4  stored data is damaged; the message names the file
  5  done, and what was looked at is not as it should be (check, bench-link, log replay, plan)
  6  no aggregator answers at this address, or not in time)";
}

}  // namespace distro::tools
