// Receives snapshots of an archiver (docs/protocol.md, "Snapshots"), and finds the files that
// joiners download. Stores the bytes, and checks them on its own thread, because the check reads
// the whole file and computes its state hash. Then joiners start from the snapshot, and the log
// drops rounds that no joiner needs.
//
//   DISTRO_ASSIGN_OR_RETURN(SnapshotTicket ticket, snapshots->Begin(header));
//   DISTRO_RETURN_IF_ERROR(snapshots->Add(&ticket, frame));   // for every frame from ticket.offset
//   snapshots->Adopt(ticket, done);
//
// Thread-safe. Begin and Add wait for the disk, for at most one frame; Adopt does not wait.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/log.h"
#include "distro/v1/snapshot.pb.h"
#include "server/log/round_log.h"
#include "server/log/snapshot_store.h"
#include "server/round/round_manager.h"

namespace distro::server {

// Checks that the log confirms a snapshot: an archiver's claim counts only if the round's record
// confirms it (docs/protocol.md, "Snapshots"). OK: its round is committed, its chain hash is the
// log's, and its state hash is the round's reference (common/run/record/log_reference.h).
// InvalidArgument: the round is 0 or ahead of the log, or the state hash differs.
// FailedPrecondition "diverged": the chain hash differs; "no_reference": the round is not committed
// yet; "no_majority": its members did not agree, so that it can never have a snapshot. DataLoss:
// the record cannot be read. Thread-safe; reads one record's header.
absl::Status CheckConfirmed(const RoundLog& round_log, const v1::SnapshotInfo& info);

// Removes snapshots that the log does not confirm from the list, such as those accepted by older
// versions without this check. Called at the start, so that none is offered to a joiner or causes
// rounds to be dropped.
void LeaveOutUnconfirmed(const RoundLog& round_log, SnapshotStore* snapshots, Log* log);

// An accepted upload.
struct SnapshotTicket {
  uint64_t number = 0;
  v1::SnapshotInfo snapshot;
  uint64_t offset = 0;  // the next expected byte
  bool stored = false;  // already listed: no bytes are needed

  bool complete() const { return offset == snapshot.size_bytes(); }
};

class SnapshotTransfers {
 public:
  // All are borrowed; the log must confirm all of `snapshots`. Starts with pruning that an
  // earlier process may have left.
  SnapshotTransfers(SnapshotStore* snapshots, RoundLog* round_log, const RoundManager* manager,
                    Log* log);
  // Waits for the running check; pending ones are answered Unavailable.
  ~SnapshotTransfers();
  SnapshotTransfers(const SnapshotTransfers&) = delete;
  SnapshotTransfers& operator=(const SnapshotTransfers&) = delete;

  // Accepts an upload; an earlier one ends as Aborted. FailedPrecondition: it is of another run
  // ("other_run") or another log ("diverged"), has no reference in the log ("no_reference",
  // "no_majority": CheckConfirmed), or is older than the kept snapshots. InvalidArgument: it
  // contradicts the log.
  absl::StatusOr<SnapshotTicket> Begin(const v1::UploadSnapshotHeader& header);
  // Stores the next bytes. Aborted: another upload has started. InvalidArgument: wrong offset, no
  // bytes, or beyond the end.
  absl::Status Add(SnapshotTicket* ticket, const v1::SnapshotFrame& frame);
  // Checks a complete upload and lists it. Calls `done` once, on its own thread or before it
  // returns.
  void Adopt(const SnapshotTicket& ticket, std::function<void(absl::Status)> done);

  struct StoredFile {
    std::string path;
    uint64_t size_bytes = 0;
  };
  // The snapshots that can be downloaded, newest first, the initial one last.
  std::vector<v1::SnapshotInfo> List() const { return snapshots_->List(); }
  // A listed snapshot, or a companion of the run. NotFound: neither is, or no longer, listed.
  absl::StatusOr<StoredFile> Find(absl::string_view sha256) const;
  // The first round whose results the log still has.
  RoundId first_round() const { return round_log_->first_round(); }

 private:
  struct Job {
    v1::SnapshotInfo snapshot;
    std::function<void(absl::Status)> done;  // null: only prune
  };

  void Run();
  absl::Status AdoptNow(const v1::SnapshotInfo& snapshot);
  void Prune();
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return closed_ || !jobs_.empty(); }

  // Constant after construction.
  SnapshotStore* const snapshots_;
  RoundLog* const round_log_;
  const RoundManager* const manager_;
  Log* const log_;

  absl::Mutex upload_mu_;  // held while bytes are stored
  uint64_t newest_ticket_ ABSL_GUARDED_BY(upload_mu_) = 0;

  absl::Mutex mu_;
  std::deque<Job> jobs_ ABSL_GUARDED_BY(mu_);
  bool closed_ ABSL_GUARDED_BY(mu_) = false;
  std::thread thread_;  // last: it begins when the rest is there
};

}  // namespace distro::server
