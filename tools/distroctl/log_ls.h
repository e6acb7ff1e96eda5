// `distroctl log ls`: a line for each round of a data folder.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "common/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct LogLsOptions {
  std::string data_dir;      // an aggregator's data folder. Required. Only read.
  uint64_t from = 0;         // the first round
  uint64_t to = UINT64_MAX;  // the first round that is not listed; the end of the log at most
};

// Columns: round, epoch, members, those included, bytes of the results, "kept" or "pruned", chain
// hash, reason. Statuses of OpenStoredLog; InvalidArgument: --from is above --to.
absl::StatusOr<Report> ListLog(const LogLsOptions& options);

Command LogLsCommand(const Console* console);

}  // namespace distro::tools
