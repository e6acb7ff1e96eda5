// `distroctl log show`: the header of one round of a data folder, for people.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct LogShowOptions {
  std::string data_dir;           // an aggregator's data folder. Required. Only read.
  std::optional<uint64_t> round;  // not set: the newest
};

// Several lines: the round, its members and the samples of the round after the next. Statuses of
// OpenStoredLog; NotFound: the round is not in the log.
absl::StatusOr<Report> ShowRound(const LogShowOptions& options);

Command LogShowCommand(const Console* console);

}  // namespace distro::tools
