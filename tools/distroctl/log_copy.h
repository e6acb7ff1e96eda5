// `distroctl log copy` copies a run between a data folder and a bucket. The other commands of a log
// read a bucket's through a copy.
#pragma once

#include <functional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/process/command_line.h"
#include "tools/distroctl/report.h"

namespace distro::tools {

struct LogCopyOptions {
  // One is an aggregator's data folder, the other s3://BUCKET/PREFIX. Required.
  std::string from;
  std::string to;
};

// Returns one line for people. `progress` gets a line for each file or each attempt.
// InvalidArgument: not one folder and one bucket. FailedPrecondition: an aggregator uses the
// folder. The statuses of FolderCopy and StoreFolder (server/log/bucket).
absl::StatusOr<Report> CopyLog(const LogCopyOptions& options,
                               const std::function<void(absl::string_view)>& progress);

Command LogCopyCommand(const Console* console);

// The flag of the commands that read a log.
Flag DataDirFlag(std::string* value);
// Returns what `read` says of `data_dir`. If that is s3://BUCKET/PREFIX, it is first set to a copy
// in a temporary folder, which is removed at the end. The statuses of `read`, and those of
// FolderCopy, which name the bucket.
absl::StatusOr<Report> ReadLog(std::string* data_dir,
                               const std::function<void(absl::string_view)>& progress,
                               absl::FunctionRef<absl::StatusOr<Report>()> read);

}  // namespace distro::tools
