#include "worker/exit_code.h"

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "common/client/probe/connection_fault.h"

namespace distro::worker {
namespace {

struct ReasonCode {
  absl::string_view reason;
  ExitCode code;
};

constexpr ReasonCode kByReason[] = {
    {"data_changed", kExitUsage},
    {"diverged", kExitDiverged},
    {"does_not_fit", kExitUsage},
    {"not_finite", kExitNotFinite},
    {"other_data", kExitRefused},
    {"other_run", kExitRefused},
    {"pruned", kExitDiverged},
    {"quarantined", kExitQuarantined},
    {"rank_failed", kExitRank},
    {"replaced", kExitReplaced},
    {"role", kExitCredentials},
    {"too_slow", kExitTooSlow},
    {"unauthenticated", kExitCredentials},
    {"version", kExitVersion},
    {"wrong_name", kExitCredentials},
};

}  // namespace

ExitCode ExitCodeFor(const absl::Status& status, int signal) {
  if (status.ok()) return kExitDone;
  if (signal != 0) return static_cast<ExitCode>(128 + signal);
  const std::string reason = ReasonOf(status);
  for (const ReasonCode& entry : kByReason) {
    if (entry.reason == reason) return entry.code;
  }
  if (const auto code = ConnectionExitCode(status)) return static_cast<ExitCode>(*code);
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
      return kExitUsage;
    case absl::StatusCode::kFailedPrecondition:
      return kExitRefused;
    case absl::StatusCode::kAborted:
      return kExitReplaced;
    case absl::StatusCode::kUnauthenticated:
      return kExitCredentials;
    default:
      return kExitFailed;
  }
}

std::string RemedyFor(ExitCode code, absl::string_view worker) {
  switch (code) {
    case kExitRefused:
      return "check --data and --aggregator";
    case kExitReplaced:
      return "nothing, if the newer process was meant to take over; otherwise give each process a "
             "--name "
             "of its own";
    case kExitDiverged:
      return "start it again; if it happens again, test the memory and the disk of this machine";
    case kExitVersion:
      return "run the aggregator's version";
    case kExitQuarantined:
      return absl::StrCat("fix the cause, then: distroctl admit ", worker);
    case kExitCredentials:
      return "check this worker's certificate or token, and that it was made for this name";
    case kExitTooSlow:
      return "use a faster link, or join a run with smaller results";
    case kExitNotFinite:
      return "if others train well, check --data and this machine; if nobody does, the run has "
             "diverged: docs/runbooks/DistroLossNotFinite.md";
    case kExitRank:
      return "start it again; if memory ran out, see --sharding; otherwise test the device";
    default:
      return IsConnectionExitCode(code) ? "see the status, and docs/troubleshooting.md" : "";
  }
}

}  // namespace distro::worker
