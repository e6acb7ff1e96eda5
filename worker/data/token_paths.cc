#include "worker/data/token_paths.h"

#include <glob.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <system_error>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

namespace fs = std::filesystem;

bool IsThere(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

absl::StatusOr<std::vector<std::string>> Matching(const std::string& pattern) {
  glob_t found{};
  const auto free = absl::MakeCleanup([&found] { globfree(&found); });
  const int result = glob(pattern.c_str(), GLOB_ERR | GLOB_NOSORT, nullptr, &found);
  if (result == GLOB_NOMATCH)
    return absl::NotFoundError(absl::StrCat(pattern, ": matches no file"));
  if (result != 0)
    return absl::PermissionDeniedError(absl::StrCat(pattern, ": a folder cannot be read"));
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  std::sort(paths.begin(), paths.end());  // by bytes: glob's own order is the locale's
  return paths;
}

absl::StatusOr<std::vector<std::string>> Named(const std::string& name) {
  if (name.empty()) return absl::InvalidArgumentError("a name between commas is empty");
  if (IsThere(name) || name.find_first_of("*?[") == std::string::npos)
    return std::vector<std::string>{name};
  return Matching(name);
}

absl::Status CheckFile(const std::string& path, std::set<fs::path>* seen) {
  std::error_code ignored;
  if (IsThere(path + "/dataset_info.json")) {
    return absl::InvalidArgumentError(absl::StrCat(
        path,
        ": holds the documents of a data set of Hugging Face, not tokens; make token files of "
        "them with scripts/distro-data, and give its index.json (docs/data.md)"));
  }
  if (fs::is_directory(path, ignored)) {
    return absl::InvalidArgumentError(absl::StrCat(
        path, ": is a folder; name the index in it, or its files, as in '", path, "/*.bin'"));
  }
  std::error_code unknown;
  const fs::path real = fs::weakly_canonical(path, unknown);
  if (seen->insert(unknown ? fs::path(path) : real).second) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": is given twice"));
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FindTokenFiles(const std::string& data) {
  std::vector<std::string> names = {data};
  if (!IsThere(data)) names = absl::StrSplit(data, ',');
  std::vector<std::string> paths;
  std::set<fs::path> seen;
  for (const std::string& name : names) {
    DISTRO_ASSIGN_OR_RETURN(const std::vector<std::string> named, Named(name));
    for (const std::string& path : named) {
      DISTRO_RETURN_IF_ERROR(CheckFile(path, &seen));
      paths.push_back(path);
    }
  }
  return paths;
}

}  // namespace distro::worker
