#include "server/service/disk_error.h"

#include "absl/strings/str_cat.h"
#include "common/base/reason.h"

namespace distro::server {

absl::Status WithoutPath(const absl::Status& status, absl::string_view operation, Log* log) {
  log->Error("disk failed for a caller", {{"operation", operation}, {"reason", status}});
  return ErrorWithReason(status.code(), "disk",
                         absl::StrCat("the aggregator cannot ", operation, ": its log says why"));
}

}  // namespace distro::server
