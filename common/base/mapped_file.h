// Files that are mapped: models, snapshots and states, which are large and are read once.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace distro {

struct Mapping;

// A file mapped read-only. Borrowed views live as long as the mapping, also where it was moved to.
// Map no file whose writers may change it for as long as the process runs: if a file becomes
// shorter, or its disk fails, the read of a byte that is gone ends the process (SIGBUS).
class MappedFile {
 public:
  // Statuses of OpenToRead.
  static absl::StatusOr<MappedFile> Open(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  absl::string_view bytes() const;

 private:
  explicit MappedFile(std::unique_ptr<const Mapping> mapping);
  std::unique_ptr<const Mapping> mapping_;
};

// From now on SIGBUS in a mapped file ends the process with 2, and a line that names the file. Any
// other SIGBUS is a crash, as without this call.
void NameTheMappedFileOnSigbus();

}  // namespace distro
