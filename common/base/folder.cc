#include "common/base/folder.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/file.h"

namespace distro {
namespace {

struct Place {
  std::string variable;  // empty: none is set
  std::string folder = "/tmp";
};

Place PlaceOfTemporaryFiles() {
  for (const char* const variable : {"TMPDIR", "TMP", "TEMP", "TEMPDIR"}) {
    const char* const value = getenv(variable);
    if (value != nullptr && *value != '\0') return {variable, value};
  }
  return {};
}

}  // namespace

absl::StatusOr<std::vector<std::string>> NamesIn(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> names;
  for (std::filesystem::directory_iterator i(folder, error), end; !error && i != end;
       i.increment(error)) {
    names.push_back(i->path().filename().string());
  }
  if (error) return ErrnoToStatus(error.value(), "list folder", folder);
  return names;
}

bool Exists(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

absl::StatusOr<std::string> MakeTemporaryFolder(absl::string_view name) {
  const Place place = PlaceOfTemporaryFiles();
  std::string folder = absl::StrCat(place.folder, "/", name, "-XXXXXX");
  if (mkdtemp(folder.data()) != nullptr) return folder;
  const absl::Status status = ErrnoToStatus(errno, "make a temporary folder in", place.folder);
  if (absl::IsResourceExhausted(status)) return status;
  return absl::InvalidArgumentError(
      absl::StrCat(place.variable.empty() ? "TMPDIR is not set" : place.variable, ": ",
                   status.message(), ": set TMPDIR to a folder to write in"));
}

}  // namespace distro
