// `distroctl run restore`: makes a data folder for a new aggregator from an archiver's folder,
// after the old one is lost. Uses no network.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/base/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct RestoreRunOptions {
  std::string archive;   // data folder of an archiver that is not running. Required. Only read.
  std::string data_dir;  // folder to write, new or empty. Required.
};

// Writes the folder and returns one line for people: the round at which the run continues.
// InvalidArgument: the archive is incomplete; says what is missing. NotFound: there is no archive.
// FailedPrecondition: an archiver uses it. AlreadyExists: `data_dir` is not empty. DataLoss: the
// archive is damaged.
absl::StatusOr<Report> RestoreRun(const RestoreRunOptions& options);

Command RunRestoreCommand(const Console* console);

}  // namespace distro::tools
