// A file that arrives in pieces and can be resumed after an interruption. Blocking; not thread-safe
// for one file.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/checksum.h"
#include "server/log/disk.h"

namespace distro::server {

// 0 for a file that does not exist.
absl::StatusOr<uint64_t> FileSizeOrZero(const std::string& path);

// Appends `data`, creating the file. InvalidArgument: `offset` is not the file's size, or the data
// goes beyond `total`. Reason "disk": the file has none or a part of `data`.
absl::Status AppendToFile(Disk* disk, const std::string& path, uint64_t total, uint64_t offset,
                          absl::string_view data);

// Fsyncs the file and compares it with the announced size and SHA-256. InvalidArgument: one
// differs; a file that is too large or has another SHA-256 is removed, a shorter one stays and can
// be resumed. Reason "disk": the fsync failed; the file is removed, because its content is unknown.
absl::Status CheckIncoming(Disk* disk, const std::string& path, uint64_t bytes,
                           const Sha256Digest& sha256);

}  // namespace distro::server
