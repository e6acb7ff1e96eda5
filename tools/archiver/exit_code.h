// The exit codes of an archiver process (docs/archiver.md has the table for people). Pure.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace distro::tools {

enum ArchiverExitCode : int {
  kArchiverDone =
      0,  // the run is done, the head is reached with --once, or a signal came: all is saved
  kArchiverFailed = 1,       // anything that is not below
  kArchiverUsage = 2,        // a flag, a file or the configuration must be mended
  kArchiverRefused = 3,      // the folder is of another run, or held by another process
  kArchiverDiverged = 5,     // the log does not continue the newest snapshot either
  kArchiverCredentials = 8,  // the aggregator does not accept the credentials
  // 11 to 18: no way to the aggregator (common/client/probe/connection_fault.h).
};

// By the status's reason (docs/protocol.md, "Statuses"), or by its code where it has none; never by
// its text.
ArchiverExitCode ArchiverExitCodeFor(const absl::Status& status);

// What a person does about it; empty where there is nothing general to say.
std::string ArchiverRemedyFor(ArchiverExitCode code);

}  // namespace distro::tools
