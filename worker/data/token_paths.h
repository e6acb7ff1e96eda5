// Expands a value of --data to the files that it means (docs/data.md, "Several files").
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace distro::worker {

// A name that is there means that file. Otherwise commas separate names, and one with *, ? or [ in
// it that is not there itself is a pattern, as a shell has them: it means the files that match,
// ordered by the bytes of their names. What comes first in `data` comes first; one or more files.
//
// NotFound: a pattern that nothing matches. A name without a pattern is returned whether it is
// there or not. InvalidArgument: a folder, a file that comes twice, nothing between two commas.
// Blocking; thread-safe.
absl::StatusOr<std::vector<std::string>> FindTokenFiles(const std::string& data);

}  // namespace distro::worker
