// The archiver's data folder (docs/files.md, "Files of the archiver"): one snapshot of the replica,
// the other files needed to restore the run, and the state that names them.
//
//   lock                           held by the one archiver that uses the folder (flock)
//   state                          which run, round and file; written last, atomically
//   snapshot-<round>.safetensors   the parameters before that round
//   log-<round>.pb                 the run, and the headers of the last rounds before it
//   companions/                    the run's companions
//   *.part, *.tmp                  incomplete
//   set_aside/                     files that the last Reset() moved away
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

  // The state of the stored snapshot; nullopt: nothing is stored yet. Verifies the snapshot's size
  // and SHA-256. DataLoss: the state or its snapshot is damaged or missing.
  absl::StatusOr<std::optional<ArchiveState>> Load() const;

  // The file beside the snapshot of `state`. nullopt: older versions wrote none, or it cannot be
  // read. FailedPrecondition (reason "version"): it is of a newer version.
  absl::StatusOr<std::optional<v1::StoredArchive>> LoadLog(const ArchiveState& state) const;

  // Writes the replica's parameters, `log` and then `state`, and fills in the snapshot in `state`;
  // removes older ones, and first what a process left that did not finish: there is room for one
  // more. After an error the folder holds what it held before.
  absl::Status Save(const Replica& replica, const v1::StoredArchive& log, ArchiveState* state);
  // Writes the state of a snapshot file that is already at SnapshotPath(state.snapshot.round()).
  absl::Status SaveState(const ArchiveState& state, const v1::StoredArchive& log);

  // Moves state and snapshot to set_aside/, and replaces its previous content. Without a state it
  // only removes snapshots: what was set aside before may be the better copy.
  absl::Status Reset();

  const std::string& path() const { return path_; }
  std::string SnapshotPath(uint64_t round) const;
  std::string CompanionsPath() const { return path_ + "/companions"; }

 private:
  ArchiveFolder(std::string path, FolderLock lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}
  std::string StatePath() const;
  std::string LogPath(uint64_t round) const;
  absl::Status Write(const Replica& replica, const v1::StoredArchive& log, ArchiveState* state);
  void RemoveOtherRounds(uint64_t kept_round) const;
  // Files of rounds that the stored state does not name.
  void RemoveLeftovers() const;

  const std::string path_;
  const FolderLock lock_;
};

}  // namespace distro::tools
