// The objects of a data folder in a bucket (docs/files.md, "In a bucket"). Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/ids.h"
#include "distro/v1/snapshot.pb.h"

namespace distro::server {

inline constexpr char kEpochKey[] = "epoch";
inline constexpr char kRunKey[] = "run.pb";  // written last: with it the run exists
inline constexpr char kSnapshotsKey[] = "snapshots.pb";
inline constexpr char kRoundsPrefix[] = "rounds/";
inline constexpr char kSnapshotsPrefix[] = "snapshots/";
// Files that a run may lack.
inline constexpr const char* kOptionalKeys[] = {"admission.pb", kSnapshotsKey, "run.json",
                                                "model_config.json"};

// The name of a file within the data folder, "rounds/0000000042.record". nullopt: the file is not
// in the folder, or it is one that only its process needs: the lock, a temporary file, an upload.
std::optional<std::string> StoredName(absl::string_view data_dir, absl::string_view path);

// The round of "rounds/0000000042.record". nullopt: not the key of a round's record.
std::optional<RoundId> RoundOfKey(absl::string_view key);
// Whether an object is never replaced: run.pb, and what is in rounds/ but for packs.
bool IsWrittenOnce(absl::string_view key);

// The name of the file of the snapshot before `round`.
std::string SnapshotName(uint64_t round);
// Whether the name is that of a snapshot. Its object has another one, with the SHA-256: whoever
// still believes to lead the run cannot replace another one's snapshot of the same round.
bool IsSnapshotName(absl::string_view name);

// The key of a snapshot; of every other file the key is its name. `sha256` in hexadecimal.
std::string SnapshotKey(absl::string_view name, absl::string_view sha256);
std::string SnapshotKey(const v1::SnapshotInfo& info);
// nullopt: not the key of a snapshot.
std::optional<uint64_t> RoundOfSnapshotKey(absl::string_view key);

}  // namespace distro::server
