// A data folder whose truth is in a bucket: a file is stored when its object is, and the folder is
// a copy that any machine can make again. What a folder does with link(2), a bucket does with a
// conditional write: a record is written only where there is none, and a file is replaced only
// while it is as this process has seen it. The object `epoch` says who leads: the process that
// wrote it last. Each write looks at it before and after, so that of two processes that believe to
// lead the run one stops (docs/decisions/0048-a-log-in-a-bucket.md).
//
// Uploads that are not complete, temporary files and the lock stay on the local disk.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/log.h"
#include "common/net/s3/s3_client.h"
#include "server/log/bucket/folder_copy.h"
#include "server/log/bucket/leader.h"
#include "server/log/disk.h"

namespace distro::server {

// Thread-safe. FailedPrecondition "fenced": another process leads; nothing that it relies on was
// written, and this process must stop. Aborted: this process leads, but one that led before has
// written a record of this round meanwhile: start again to go on after it. Other failures of the
// bucket have the reason "disk", operation "put" or "delete", and may pass.
class BucketDisk final : public Disk {
 public:
  // `bucket`, `local` and `log` are borrowed.
  BucketDisk(S3Client* bucket, Disk* local, std::string data_dir, LeaderOptions leader, Log* log);
  ~BucketDisk() override;

  // Checks the store, and copies into the folder what it lacks. After the epoch was raised it also
  // writes the heartbeat from now on, and deletes objects that the run no longer has.
  // InvalidArgument: the credentials are refused, and the folder has no run; with one, as while
  // they are renewed, reason "disk".
  absl::StatusOr<bool> Restore() override;

  absl::Status CreateFolder(const std::string& path) override;
  absl::StatusOr<int> Create(const std::string& path) override;
  absl::Status Write(int fd, const std::string& path, uint64_t offset,
                     absl::string_view bytes) override;
  absl::Status Fsync(int fd, const std::string& path) override;
  absl::Status Link(const std::string& from, const std::string& to) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  // Deletes the object of a record that is in a pack. Other objects go when the list of snapshots
  // is replaced, and at the next start.
  absl::Status Unlink(const std::string& path) override;
  // A stored file needs no name that survives a loss of power: the next start fetches it.
  absl::Status FsyncFolder(const std::string& path) override;

  // OK: this process leads, or has not raised the epoch yet.
  absl::Status CheckLeader(DiskOperation operation = DiskOperation::kPut);

 private:
  std::string epoch_sha256() const;
  absl::StatusOr<FetchedRun> Fetch();
  void Tidy(const FetchedRun& run);
  absl::Status Store(const std::string& name, absl::FunctionRef<absl::Status()> put);
  absl::Status PutNew(const std::string& name, const std::string& path, const S3Content& content);
  absl::Status PutSnapshot(const std::string& name, const S3Content& content);
  absl::Status Replace(const std::string& name, const std::string& path, const S3Content& content);
  absl::StatusOr<S3Object> Look(const std::string& key);
  bool IsPacked(RoundId round) const;
  absl::Status NotePack(const std::string& path);
  void DeleteDropped(const std::vector<v1::SnapshotInfo>& before);

  S3Client* const bucket_;
  Disk* const local_;
  const std::string data_dir_;
  const LeaderOptions leader_;
  Log* const log_;
  FolderCopy copy_;             // used by Restore alone
  bool store_checked_ = false;  // the same
  std::unique_ptr<LeaderHeartbeat> heartbeat_;

  mutable absl::Mutex mu_;
  std::string epoch_sha256_ ABSL_GUARDED_BY(mu_);  // of our own epoch; empty: not written yet
  std::map<uint64_t, uint64_t> packs_ ABSL_GUARDED_BY(mu_);  // as in FetchedRun
};

}  // namespace distro::server
