// The log of a data folder for commands that only look at it, also while an aggregator writes to
// it. Thread-safe, blocking.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "distro/v1/round.pb.h"
#include "server/log/read_run.h"
#include "server/log/round_log.h"

namespace distro::tools {

struct StoredLog {
  std::shared_ptr<const server::RunIdentity> run;  // outlives `log`
  std::unique_ptr<const server::RoundLog> log;
};

// Reads every header and verifies the hash chain. InvalidArgument: no `data_dir`. NotFound: it
// holds no run. DataLoss: a file is damaged; the message names it.
absl::StatusOr<StoredLog> OpenStoredLog(const std::string& data_dir, server::SnapshotCheck check);

// Members whose update is in at least one segment.
int IncludedMembers(const v1::RoundHeader& header);
// Of all results.
uint64_t PayloadBytes(const v1::RoundHeader& header);

}  // namespace distro::tools
