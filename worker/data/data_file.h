// A file of data that a worker reads for as long as it trains. It is not mapped, so a file that is
// shortened, and a disk that fails, are errors and not the end of the process; and a file that is
// rewritten in place is found at the next read.
//
//   DISTRO_ASSIGN_OR_RETURN(const DataFile file, DataFile::Open("tokens.bin"));
//   DISTRO_RETURN_IF_ERROR(file.Read(0, absl::MakeSpan(bytes)));
//
// Thread-safe; blocking.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/file_calls.h"

namespace distro::worker {

class DataFile {
 public:
  // The statuses of ErrnoToStatus. InvalidArgument: not a regular file. Where this process may not
  // open more files, it first raises its limit as far as the system lets it.
  static absl::StatusOr<DataFile> Open(const std::string& path);

  const std::string& path() const { return path_; }
  uint64_t size() const { return version_.size; }

  // Fills `out` with the bytes from `offset` on. Requires them to lie in the file as it was opened.
  // FailedPrecondition with reason `data_changed`: the file was written to since it was opened; the
  // message names both sizes and times. A file that was replaced by another one of its name is read
  // on as it was. The statuses of ErrnoToStatus: it cannot be read.
  absl::Status Read(uint64_t offset, absl::Span<char> out) const;

 private:
  struct Version {
    bool operator==(const Version&) const = default;
    uint64_t size = 0;
    absl::Time written;
  };

  DataFile(std::string path, FileHandle handle)
      : path_(std::move(path)), handle_(std::move(handle)) {}
  absl::StatusOr<Version> CurrentVersion() const;
  absl::Status CheckUnchanged() const;

  std::string path_;
  FileHandle handle_;
  Version version_;
};

}  // namespace distro::worker
