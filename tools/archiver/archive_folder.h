// The archiver's data folder (docs/files.md, "Files of the archiver"): one snapshot of the replica
// with what restoring the run takes besides, and the state that names both.
//
//   lock                           held by the one archiver that works here (flock)
//   state                          which run, round and file; written last, atomically
//   snapshot-<round>.safetensors   the parameters before that round
//   log-<round>.pb                 what the run is, and the headers of the last rounds before it
//   companions/                    files of the run that travel to every checkpoint
//   *.part, *.tmp                  not complete
//   set_aside/                     what the last Reset() put away
//
// Not thread-safe. Blocking.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/file.h"
#include "distro/v1/store.pb.h"
#include "kernels/replica/replica.h"
#include "tools/archiver/archive_state.h"

namespace distro::tools {

class ArchiveFolder {
 public:
  // Creates the folder and takes the lock. FailedPrecondition: another process holds it.
  static absl::StatusOr<std::unique_ptr<ArchiveFolder>> Open(const std::string& path);

  // What the folder holds; not set: nothing yet. The snapshot's size and SHA-256 are verified.
  // DataLoss: the state or its file is damaged or missing.
  absl::StatusOr<std::optional<ArchiveState>> Load() const;

  // What is kept beside the snapshot of `state`. Not set: nothing, as older versions left it, or
  // what cannot be read.
  std::optional<v1::StoredArchive> LoadLog(const ArchiveState& state) const;

  // Writes the replica's parameters, `log` and then `state`, whose snapshot it fills in; removes
  // older ones. After an error the folder holds what it held before.
  absl::Status Save(const Replica& replica, const v1::StoredArchive& log, ArchiveState* state);
  // Lists a snapshot file that is at SnapshotPath(state.snapshot.round()) already.
  absl::Status SaveState(const ArchiveState& state, const v1::StoredArchive& log);

  // Puts state and snapshot into set_aside/, in the place of what is there.
  absl::Status Reset();

  const std::string& path() const { return path_; }
  std::string SnapshotPath(uint64_t round) const;
  std::string CompanionsPath() const { return path_ + "/companions"; }

 private:
  ArchiveFolder(std::string path, FolderLock lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string StatePath() const;
  std::string LogPath(uint64_t round) const;
  void RemoveOtherRounds(uint64_t kept_round) const;

  const std::string path_;
  const FolderLock lock_;
};

}  // namespace distro::tools
