// How a worker process ends (docs/worker.md has the table for people). Pure.
#pragma once

#include "absl/status/status.h"

namespace distro::worker {

enum ExitCode {
  kExitDone = 0,      // the run is done
  kExitFailed = 1,    // anything that is not below
  kExitUsage = 2,     // a flag, a file or the configuration must be mended
  kExitRefused = 3,   // the aggregator refuses this worker: other data, other run, other version
  kExitReplaced = 4,  // a newer process took this worker's name
  kExitDiverged =
      5,  // the parameters are not those of the run's log; start again to take a snapshot
  kExitInterrupted = 130,  // SIGINT
  kExitTerminated = 143,   // SIGTERM
};

// The exit code for the status that ended the training; `signal` is the signal that asked for the end, or 0.
ExitCode ExitCodeFor(const absl::Status& status, int signal);

}  // namespace distro::worker
