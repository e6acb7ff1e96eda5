// The exit codes of a worker process (docs/worker.md has the table for people). Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace distro::worker {

enum ExitCode : int {
  kExitDone = 0,         // the run is done
  kExitFailed = 1,       // anything not listed below
  kExitUsage = 2,        // fix a flag, a file or the configuration
  kExitRefused = 3,      // the aggregator refuses this worker: other data, other run
  kExitReplaced = 4,     // a newer process took this worker's name
  kExitDiverged = 5,     // the log does not continue the parameters, and a resync did not help
  kExitVersion = 6,      // this version is not that of the aggregator or the run
  kExitQuarantined = 7,  // nothing is accepted from this worker until an operator admits it
  kExitCredentials = 8,  // the aggregator does not accept this worker's credentials
  kExitTooSlow = 9,      // the link could never catch up with the run
  kExitRank = 10,        // a rank of this worker's node failed
  // 11 to 18: the aggregator cannot be reached (common/client/probe/connection_fault.h).
  kExitNotFinite = 19,  // no step was finite, for too many rounds
  // 128 + the number of the signal that asked for the end:
  kExitHungUp = 129,       // SIGHUP
  kExitInterrupted = 130,  // SIGINT
  kExitTerminated = 143,   // SIGTERM
  kExitCpuTime = 152,      // SIGXCPU
};

// The exit code for the status that ended the training: chosen by its reason (docs/protocol.md,
// "Statuses"), or by its code if it has none; never by its text. `signal` is the signal that
// requested the end, or 0.
ExitCode ExitCodeFor(const absl::Status& status, int signal);

// What a person can do about it, for the log; empty if there is no general advice. `worker` is the
// worker's name.
std::string RemedyFor(ExitCode code, absl::string_view worker);

}  // namespace distro::worker
