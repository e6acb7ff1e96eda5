// `distroctl log replay`: applies the whole log of a data folder to the initial model on the CPU,
// and compares the results with the log's hashes.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct ReplayLogOptions {
  // An aggregator's data folder. Required. Only read; the aggregator may be running.
  std::string data_dir;
};

// Verifies the hash chain and every payload's checksum, and applies all rounds in order. If the
// oldest results have been deleted, it begins at the earliest snapshot that the log continues.
// Compares the state hash before each round with those that its members reported. Returns run,
// rounds, state hash and the comparison, several lines. `progress` gets occasional lines. Holds the
// parameters and one round in memory.
//
// InvalidArgument: the option. NotFound: the folder holds no run. DataLoss: a file is damaged or
// cannot be applied; the message names it. Aborted: members reported other hashes; the message has
// the text and names the first ones.
absl::StatusOr<Report> ReplayLog(const ReplayLogOptions& options,
                                 const std::function<void(absl::string_view)>& progress);

Command LogReplayCommand(const Console* console);

}  // namespace distro::tools
