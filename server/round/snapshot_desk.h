// Receives an archiver's snapshot: its bytes are stored, then checked on a thread of its own,
// because the check reads the whole file and computes its state hash; then joiners start from it,
// and the log drops the rounds that no joiner needs any more (docs/protocol.md, "Snapshots").
//
// Thread-safe. Begin and Add wait for the disk, for a frame at most; Adopt does not wait.
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

// Does the log vouch for a snapshot? Whoever offers one is only believed as far as the round's own
// record goes (docs/protocol.md, "Snapshots"). OK: its round is committed, its chain hash is the
// log's, and its state hash is the round's reference (common/round_log/log_reference.h).
// InvalidArgument: the round is 0 or ahead of the log, or the state hash is another one.
// FailedPrecondition "diverged": another chain hash; "no_reference": the round is not committed
// yet; "no_majority": its members did not agree, so that it can never have a snapshot. DataLoss:
// the record cannot be read. Thread-safe; reads one record's header.
absl::Status CheckVouched(const RoundLog& round_log, const v1::SnapshotInfo& info);

// At a start, before anybody is offered one: leaves out the snapshots that the log does not vouch
// for, such as older versions took on the word of an archiver. So none of them is ever given to a
// joiner, and none makes a result go.
void LeaveOutUnvouched(const RoundLog& round_log, SnapshotStore* snapshots, Log* log);

// An upload that was let in.
struct SnapshotTicket {
  uint64_t number = 0;
  v1::SnapshotInfo snapshot;
  uint64_t offset = 0;  // the next byte that is wanted
  bool stored = false;  // it is listed already: nothing is wanted

  bool complete() const { return offset == snapshot.size_bytes(); }
};

class SnapshotDesk {
 public:
  // All are borrowed; the log vouches for what `snapshots` lists. Begins with what an earlier
  // process may have left to prune.
  SnapshotDesk(SnapshotStore* snapshots, RoundLog* round_log, const RoundManager* manager,
               Log* log);
  // Waits for the check that runs; those that wait are answered Unavailable.
  ~SnapshotDesk();
  SnapshotDesk(const SnapshotDesk&) = delete;
  SnapshotDesk& operator=(const SnapshotDesk&) = delete;

  // Lets the newest upload in; what came before it ends as Aborted. FailedPrecondition: of another
  // run ("other_run"), of another log ("diverged"), without a reference in the log ("no_reference",
  // "no_majority": CheckVouched), or older than what is kept. InvalidArgument: not what the log
  // says.
  absl::StatusOr<SnapshotTicket> Begin(const v1::UploadSnapshotHeader& header);
  // Stores the next bytes. Aborted: another upload began. InvalidArgument: not the next bytes,
  // none, or beyond the end.
  absl::Status Add(SnapshotTicket* ticket, const v1::SnapshotFrame& frame);
  // Checks a complete upload and lists it. `done` is called once, on the desk's thread or here.
  void Adopt(const SnapshotTicket& ticket, std::function<void(absl::Status)> done);

  struct StoredFile {
    std::string path;
    uint64_t size_bytes = 0;
  };
  // What can be downloaded, newest first, the initial one last.
  std::vector<v1::SnapshotInfo> List() const { return snapshots_->List(); }
  // A listed snapshot, or a companion of the run. NotFound: neither is (any more).
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
