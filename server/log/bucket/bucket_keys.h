// The objects of a data folder in a bucket (docs/files.md, "In a bucket"). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "distro/v1/snapshot.pb.h"

namespace distro::server {

// Files that are read at every start: what they say changes.
inline constexpr absl::string_view kEpochKey = "epoch";

// The name of a file within the data folder, "rounds/0000000042.record". nullopt: the file is not
// in the folder, or it is one that only its process needs: the lock, a temporary file, an upload.
std::optional<std::string> StoredName(absl::string_view data_dir, absl::string_view path);

// Whether the name is that of a snapshot. Its object has another one, with the SHA-256: whoever
// still believes to lead the run cannot replace another one's snapshot of the same round.
bool IsSnapshotName(absl::string_view name);

// The key of a snapshot; of every other file the key is its name. `sha256` in hexadecimal.
std::string SnapshotKey(absl::string_view name, absl::string_view sha256);
std::string SnapshotKey(const v1::SnapshotInfo& info);
// nullopt: not the key of a snapshot.
std::optional<uint64_t> RoundOfSnapshotKey(absl::string_view key);

}  // namespace distro::server
