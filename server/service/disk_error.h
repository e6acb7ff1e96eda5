// What a caller is told when the aggregator's disk fails: which operation, not which path.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/log.h"

namespace distro::server {

// A status of the same code with reason `disk`: "the aggregator cannot OPERATION: its log says why". The log gets all of it.
absl::Status WithoutPath(const absl::Status& status, absl::string_view operation, Log* log);

}  // namespace distro::server
