// What a caller is told when the aggregator's disk fails: which operation, not which path
// (docs/protocol.md, "Statuses").
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/log.h"

namespace distro::server {

// Unavailable `disk`: "the aggregator cannot OPERATION: its log says why"; of stored bytes that are
// damaged DataLoss, with the same. The log gets all of `status`.
absl::Status WithoutPath(const absl::Status& status, absl::string_view operation, Log* log);

// WithoutPath where `status` is the disk's; any other as it is.
absl::Status ForCaller(const absl::Status& status, absl::string_view operation, Log* log);

}  // namespace distro::server
