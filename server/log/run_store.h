// The data folder of an aggregator: one run, its configuration, its models, its epoch
// (docs/files.md has the formats).
//
//   lock                        held by the one process that owns the folder (flock)
//   epoch                       u64 as text; raised and fsynced at every start
//   admission.pb                pause and quarantines
//   snapshots.pb                what snapshots/ holds besides the initial one
//   run.pb                      the run; written last: with it the run exists
//   run.json  model_config.json copies of what run.pb holds, for people; never read
//   incoming/<sha256>.part      a snapshot that is still being uploaded
//   companions/<name>           files that are copied into every checkpoint
//   snapshots/<round>.safetensors
//   rounds/start.record  rounds/<round>.record
//
// Not thread-safe, except where a method says so.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <random>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/checksum.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/ids.h"
#include "common/base/log.h"
#include "common/model/layout/layout.h"
#include "distro/v1/run.pb.h"
#include "distro/v1/snapshot.pb.h"
#include "server/log/admission_store.h"
#include "server/log/disk.h"
#include "server/log/run_identity.h"
#include "server/log/snapshot_store.h"

namespace distro::server {

class RunStore {
 public:
  // Whether the process can serve the run, which is there or not.
  using StartCheck = std::function<absl::Status(RunStore* store)>;

  // Takes the lock, reads the run if there is one, verifies the snapshots' SHA-256, and raises the
  // epoch (epoch_file.h). That ends another process that serves the run, so `check` is asked just
  // before, and its error is returned. FailedPrecondition: another process uses the folder, or a
  // file is of a newer version. DataLoss: a file is damaged; the message names it and the remedy.
  // Reason "disk": the folder cannot be written. `disk`, `clock` and `log` are borrowed.
  static absl::StatusOr<std::unique_ptr<RunStore>> Open(const std::string& data_dir, Disk* disk,
                                                        const Clock* clock, Log* log,
                                                        const StartCheck& check = nullptr);

  EpochId epoch() const { return epoch_; }
  bool has_run() const { return identity_ != nullptr; }
  // Requires has_run(). Shared and immutable.
  std::shared_ptr<const RunIdentity> run() const { return identity_; }
  std::string rounds_dir() const { return data_dir_ + "/rounds"; }
  // null before has_run(); then valid as long as this object.
  SnapshotStore* snapshots() const { return snapshots_.get(); }
  AdmissionStore* admission() const { return admission_.get(); }
  Disk* disk() const { return disk_; }

  // Upload of the initial snapshot. The number of bytes received so far, at which the client
  // continues.
  absl::StatusOr<uint64_t> IncomingBytes(const Sha256Digest& sha256) const;
  // Appends at `offset`. InvalidArgument: `offset` is not IncomingBytes(), or the data exceeds the
  // announced `snapshot_bytes`. FailedPrecondition: has_run(). Reason "disk": not stored; call
  // IncomingBytes() again.
  absl::Status AppendIncoming(const Sha256Digest& sha256, uint64_t snapshot_bytes, uint64_t offset,
                              absl::string_view data);
  // Upload of the companions, concatenated. Requires a checked `list`. Statuses as for the
  // snapshot.
  absl::StatusOr<uint64_t> IncomingCompanionBytes(const CompanionList& list) const;
  absl::Status AppendIncomingCompanions(const CompanionList& list, uint64_t offset,
                                        absl::string_view data);
  // The uploaded companions. InvalidArgument: incomplete, or different from `list`: then the upload
  // is removed.
  absl::StatusOr<Companions> IncomingCompanions(const CompanionList& list);

  // Checks size and SHA-256 of the upload, its manifest and tensors, computes the state hash, and
  // makes the run durable. InvalidArgument: configuration, model or snapshot are refused, or the
  // companions do not have the pinned tokenizer; a snapshot that does not match its SHA-256 is
  // removed. AlreadyExists: the folder has another run. The same run again is OK, also if one of
  // the two has no companions, as in runs of older versions. Reason "disk": there is no run; try
  // again.
  absl::Status CreateRun(const v1::RunConfig& config, absl::string_view model_config_json,
                         uint64_t snapshot_bytes, const Sha256Digest& sha256,
                         const Companions& companions = {});
  // OK if this is the run in the folder, as in CreateRun. Requires has_run().
  absl::Status CheckSameRun(const v1::RunConfig& config, absl::string_view model_config_json,
                            const Sha256Digest& sha256, const CompanionList& companions) const;
  // CreateRun from a checkpoint folder on this machine (`--run`, `--model`). NotFound: a file is
  // missing there.
  absl::Status CreateRunFromFolder(const v1::RunConfig& config, const std::string& checkpoint_dir);

 private:
  RunStore(std::string data_dir, FolderLock lock, Disk* disk, const Clock* clock, Log* log)
      : data_dir_(std::move(data_dir)),
        lock_(std::move(lock)),
        disk_(disk),
        clock_(clock),
        log_(log) {}

  absl::Status Prepare();
  absl::Status LoadRun();
  absl::Status UseRun(std::shared_ptr<const RunIdentity> run);
  absl::Status Publish(RunIdentity identity, const std::string& incoming,
                       const Companions& companions);
  // With the run's bytes for those that were only saved anew.
  Companions AsStored(Companions companions) const;
  absl::Status WriteCompanionFiles(const Companions& companions);

  std::string IncomingPath(const Sha256Digest& sha256) const;
  std::string IncomingPath(const CompanionList& list) const;

  const std::string data_dir_;
  const FolderLock lock_;
  Disk* const disk_;
  const Clock* const clock_;
  Log* const log_;
  // A part of the run's id, the same if a creation is tried again.
  const uint32_t run_number_ = std::random_device()();
  EpochId epoch_;
  std::shared_ptr<const RunIdentity> identity_;
  std::unique_ptr<SnapshotStore> snapshots_;
  std::unique_ptr<AdmissionStore> admission_;
};

}  // namespace distro::server
