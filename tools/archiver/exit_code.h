// The exit codes of an archiver process (docs/archiver.md has the table for people). Pure.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace distro::tools {

enum ArchiverExitCode : int {
  kArchiverDone =
      0,  // the run is done, the head is reached with --once, or a signal came: all is saved
  kArchiverFailed = 1,       // anything not listed below
  kArchiverUsage = 2,        // fix a flag, a file or the configuration
  kArchiverRefused = 3,      // the folder belongs to another run, or another process uses it
  kArchiverDiverged = 5,     // the log does not continue the newest snapshot either
  kArchiverVersion = 6,      // the folder or the run is of a newer version
  kArchiverCredentials = 8,  // the aggregator does not accept the credentials
  // 11 to 18: the aggregator cannot be reached (common/client/probe/connection_fault.h).
};

// Chosen by the status's reason (docs/protocol.md, "Statuses"), or by its code if it has none;
// never by its text.
ArchiverExitCode ArchiverExitCodeFor(const absl::Status& status);

// What a person can do about it; empty if there is no general advice.
std::string ArchiverRemedyFor(ArchiverExitCode code);

}  // namespace distro::tools
