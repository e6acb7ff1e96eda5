// Expands a value of --data to its files (docs/data.md, "Several files").
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace distro::worker {

// If a file named `data` exists, it is the result. Otherwise commas separate names. A name with *,
// ? or [, if there is no such file, is a shell pattern and is replaced by the matching files,
// sorted by the bytes of their names. Names keep their order. Returns at least one file.
//
// NotFound: a pattern without a match. A name without a pattern is returned even if there is no
// such file. InvalidArgument: a folder, a repeated file, an empty name. Blocking; thread-safe.
absl::StatusOr<std::vector<std::string>> FindTokenFiles(const std::string& data);

}  // namespace distro::worker
