// `distroctl run restore`: a data folder for a new aggregator, from the folder of an archiver,
// where the old one is gone. Nothing is asked of a network.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct RestoreRunOptions {
  std::string archive;   // data folder of an archiver, which does not run. Required. Only read.
  std::string data_dir;  // folder to write, new or empty. Required.
};

// Writes the folder and returns a line for people: the round with which the run goes on.
// InvalidArgument: the archive has not what it takes; says what. NotFound: there is no archive.
// FailedPrecondition: an archiver works on it. AlreadyExists: `data_dir` holds something. DataLoss:
// the archive is damaged.
absl::StatusOr<Report> RestoreRun(const RestoreRunOptions& options);

Command RunRestoreCommand(const Console* console);

}  // namespace distro::tools
