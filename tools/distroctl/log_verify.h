// `distroctl log verify`: every byte of a data folder against its checksums.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct LogVerifyOptions {
  // An aggregator's data folder. Required. Only read, also while the aggregator runs.
  std::string data_dir;
};

// Verifies run.pb, epoch, admission.pb, snapshots.pb, the SHA-256 of every snapshot, every header,
// the hash chain, and every payload that is kept. Nothing is applied: that is ReplayLog. Returns
// run, rounds, bytes and the last hash. `progress` gets a line now and then.
//
// InvalidArgument, NotFound: as OpenStoredLog. DataLoss: something is damaged; the message names
// file and part of all that was found (ten at most; after a damaged header the chain cannot be
// followed, so it is the only one).
absl::StatusOr<Report> VerifyLog(const LogVerifyOptions& options,
                                 const std::function<void(absl::string_view)>& progress);

Command LogVerifyCommand(const Console* console);

}  // namespace distro::tools
