#include "server/service/disk_error.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/reason.h"
#include "server/log/disk.h"

namespace distro::server {
namespace {

// Whether it is the disk's and not the caller's. Not every function below says `disk`: of the
// others' statuses, those of codes that a system call's failure can have name a file, and ours of
// the same codes hold no slash.
bool IsOfTheDisk(const absl::Status& status) {
  if (IsDiskError(status)) return true;
  if (const std::string reason = ReasonOf(status); !reason.empty()) return reason == "disk";
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDataLoss:
      return absl::StrContains(status.message(), '/');
    default:
      return false;
  }
}

}  // namespace

absl::Status WithoutPath(const absl::Status& status, absl::string_view operation, Log* log) {
  log->Error("disk failed for a caller", {{"operation", operation}, {"reason", status}});
  return ErrorWithReason(
      absl::IsDataLoss(status) ? absl::StatusCode::kDataLoss : absl::StatusCode::kUnavailable,
      "disk", absl::StrCat("the aggregator cannot ", operation, ": its log says why"));
}

absl::Status ForCaller(const absl::Status& status, absl::string_view operation, Log* log) {
  return !status.ok() && IsOfTheDisk(status) ? WithoutPath(status, operation, log) : status;
}

}  // namespace distro::server
