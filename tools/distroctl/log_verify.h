// `distroctl log verify`: checks every byte of a data folder against its checksums.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct LogVerifyOptions {
  // An aggregator's data folder. Required. Only read; the aggregator may be running.
  std::string data_dir;
};

// Verifies run.pb, epoch, admission.pb, snapshots.pb, the SHA-256 of every snapshot, every header,
// the hash chain, and every payload that is stored. Applies nothing: ReplayLog does. Returns run,
// rounds, bytes and the last hash. `progress` gets occasional lines.
//
// InvalidArgument, NotFound: as OpenStoredLog. DataLoss: something is damaged; the message names
// file and part of each fault (at most ten; a damaged header is the last, because the chain cannot
// be followed beyond it).
absl::StatusOr<Report> VerifyLog(const LogVerifyOptions& options,
                                 const std::function<void(absl::string_view)>& progress);

Command LogVerifyCommand(const Console* console);

}  // namespace distro::tools
