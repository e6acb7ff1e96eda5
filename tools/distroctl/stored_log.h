// Opens the log of a data folder for reading, even while an aggregator writes to it; and two
// commands that print it: `distroctl log ls` and `log show`. Thread-safe, blocking.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/process/command_line.h"
#include "distro/v1/round.pb.h"
#include "server/log/read_run.h"
#include "server/log/round_log.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct StoredLog {
  std::shared_ptr<const server::RunIdentity> run;  // outlives `log`
  std::unique_ptr<const server::RoundLog> log;
};

// Reads every header and verifies the hash chain. InvalidArgument: no `data_dir`. NotFound: it
// holds no run. DataLoss: a file is damaged; the message names it.
absl::StatusOr<StoredLog> OpenStoredLog(const std::string& data_dir, server::SnapshotCheck check);

// The run's number of rounds, from its newest record.
absl::StatusOr<uint64_t> RoundsOf(const StoredLog& stored);

// The number of members whose update is in at least one segment.
int IncludedMembers(const v1::RoundHeader& header);

struct LogLsOptions {
  std::string data_dir;      // an aggregator's data folder. Required. Only read.
  uint64_t from = 0;         // the first round
  uint64_t to = UINT64_MAX;  // the first round not to list; clamped to the end of the log
};

// Columns: round, epoch, members, included members, bytes of the results, "kept" or "pruned", chain
// hash, reason. Statuses of OpenStoredLog; InvalidArgument: --from is above --to.
absl::StatusOr<Report> ListLog(const LogLsOptions& options);

Command LogLsCommand(const Console* console);

struct LogShowOptions {
  std::string data_dir;           // an aggregator's data folder. Required. Only read.
  std::optional<uint64_t> round;  // nullopt: the newest
};

// Several lines: the round, its members, and the samples of the round after the next. Statuses of
// OpenStoredLog; NotFound: the round is not in the log.
absl::StatusOr<Report> ShowRound(const LogShowOptions& options);

Command LogShowCommand(const Console* console);

}  // namespace distro::tools
