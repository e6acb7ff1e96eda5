// The snapshots of a run: the initial model, and the newest two verified uploads of an archiver
// (docs/files.md has the files).
//
// Thread-safe. All functions except List() and PathOf() block on the disk. Adopt() reads the whole
// file and holds all parameters in memory while it runs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "common/base/log.h"
#include "distro/v1/snapshot.pb.h"
#include "distro/v1/store.pb.h"
#include "server/log/disk.h"
#include "server/log/run_identity.h"

namespace distro::server {

class SnapshotStore {
 public:
  // Opens the snapshots of an existing run. Verifies the SHA-256 of each listed snapshot except the
  // initial one, which RunStore has verified; removes damaged or missing ones from the list and
  // logs them. DataLoss: snapshots.pb is damaged. `disk` and `log` are borrowed.
  static absl::StatusOr<std::unique_ptr<SnapshotStore>> Open(const std::string& data_dir,
                                                             std::shared_ptr<const RunIdentity> run,
                                                             Disk* disk, Log* log);

  // Newest first, the initial one last: never empty.
  std::vector<v1::SnapshotInfo> List() const;
  // The path of a listed snapshot. An opened file can be read to its end, even if it is dropped
  // meanwhile. `sha256` is 32 bytes. NotFound: not listed, or no longer.
  absl::StatusOr<std::string> PathOf(absl::string_view sha256) const;

  // Upload: the number of bytes received so far, at which the archiver continues; size_bytes if the
  // snapshot is listed. InvalidArgument: the SHA-256 does not have 32 bytes, the round is 0, or the
  // size is not that of this run's snapshots. AlreadyExists: another snapshot of this round is
  // listed. FailedPrecondition: older than the two kept ones, or than the initial one.
  absl::StatusOr<uint64_t> IncomingBytes(const v1::SnapshotInfo& info) const;
  // Appends. The same statuses, and InvalidArgument: `offset` is not IncomingBytes(), or the data
  // exceeds size_bytes. Reason "disk": not stored; call IncomingBytes() again. Two unfinished
  // uploads are kept; a third one removes the one that waited longest.
  absl::Status AppendIncoming(const v1::SnapshotInfo& info, uint64_t offset,
                              absl::string_view data);

  // Verifies a complete upload (SHA-256, tensors, finite values, own state hash equals
  // info.state_hash) and lists it, durably; then drops all but the newest two. A listed one again
  // is OK. The caller must check round and log_hash. InvalidArgument: incomplete, or different from
  // `info`: then the upload is removed.
  absl::Status Adopt(const v1::SnapshotInfo& info);

  // Removes a listed snapshot from the list, as if it were damaged; its file stays until the next
  // one is adopted. Not durable: the next start decides again. Ignores an unknown SHA-256 and that
  // of the initial snapshot.
  void LeaveOut(absl::string_view sha256);

 private:
  SnapshotStore(std::string data_dir, std::shared_ptr<const RunIdentity> run, Disk* disk, Log* log)
      : data_dir_(std::move(data_dir)), run_(std::move(run)), disk_(disk), log_(log) {}

  absl::Status Load();
  absl::Status CheckAnnounced(const v1::SnapshotInfo& info) const;
  bool IsListed(const v1::SnapshotInfo& info) const;
  absl::Status MakeRoomFor(const std::string& incoming);
  absl::Status CheckParameters(const std::string& path, const v1::SnapshotInfo& info) const;
  absl::Status Publish(const std::string& incoming, const v1::SnapshotInfo& info);
  void RemoveUnlisted(const std::vector<v1::SnapshotInfo>& listed);
  std::string IncomingPath(const v1::SnapshotInfo& info) const;

  // Constant after construction.
  const std::string data_dir_;
  const std::shared_ptr<const RunIdentity> run_;
  Disk* const disk_;
  Log* const log_;

  absl::Mutex adopt_mu_;     // held through Adopt
  absl::Mutex incoming_mu_;  // held through AppendIncoming
  mutable absl::Mutex mu_;
  std::vector<v1::SnapshotInfo> later_ ABSL_GUARDED_BY(mu_);  // ascending by round
};

// snapshots.pb: the snapshots except the initial one, as one file with a checksum (docs/files.md).
// Pure functions.

std::string EncodeSnapshotsFile(const v1::StoredSnapshots& snapshots);

// DataLoss: damaged, more than two, not ascending by round from 1 on, or a SHA-256 without 32
// bytes. FailedPrecondition: of a newer version.
absl::StatusOr<v1::StoredSnapshots> ParseSnapshotsFile(absl::string_view bytes);

}  // namespace distro::server
