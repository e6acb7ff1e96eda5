// Names of the files in rounds/, and what to do when one of them is damaged (docs/files.md). Pure functions.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/base/ids.h"

namespace distro::server {

inline constexpr absl::string_view kStartRecordName = "start.record";

// "0000000042.record"
std::string RecordName(RoundId round);
// Not set: not the name of a round's record.
std::optional<RoundId> RoundOfRecordName(absl::string_view name);

// The status; a DataLoss also says what the operator can do.
absl::Status StartDamage(const absl::Status& status);
absl::Status RoundDamage(const absl::Status& status, RoundId round);

}  // namespace distro::server
