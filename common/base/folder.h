// What is in a folder, and new folders for temporary files. Thread-safe; blocking.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace distro {

// The names in a folder, in no order. Errors as ErrnoToStatus.
absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder);

// Whether there is something of this name; also if the reason that it cannot be seen is unknown.
bool Exists(const std::string& path);

// Makes DIR/`name`-XXXXXX, where DIR is what TMPDIR names; without it, or where it is empty, TMP,
// TEMP, TEMPDIR in this order, and then /tmp. The caller removes it. InvalidArgument: DIR is no
// folder to write in; the message names the variable.
absl::StatusOr<std::string> MakeTemporaryFolder(absl::string_view name);

}  // namespace distro
