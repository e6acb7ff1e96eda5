// `distroctl log replay`: the whole log of a data folder applied to the initial model on the CPU,
// and what it proves.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct ReplayLogOptions {
  // An aggregator's data folder. Required. Only read, also while the aggregator runs.
  std::string data_dir;
};

// Verifies the hash chain and every payload's checksum, applies all rounds in order (of a log
// without the oldest results: from the earliest snapshot that it continues), and compares the state
// hash before each round with those that its members reported. Returns run, rounds, state hash and
// the comparison, several lines. `progress` gets a line now and then. Holds the parameters and one
// round in memory.
//
// InvalidArgument: the option. NotFound: the folder holds no run. DataLoss: a file is damaged, or
// what it holds does not apply; the message names it. Aborted: members reported other hashes; the
// message has the text and names the first ones.
absl::StatusOr<Report> ReplayLog(const ReplayLogOptions& options,
                                 const std::function<void(absl::string_view)>& progress);

Command LogReplayCommand(const Console* console);

}  // namespace distro::tools
