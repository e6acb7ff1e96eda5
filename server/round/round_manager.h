// The run as it goes: sessions, the open round, the log and the broadcast, in one owner of the mutex and the clock.
// The thinking is in Transition(), Decide() and CombineSegment(); here is the acting (docs/protocol.md).
//
// Thread-safe. One thread (RoundThread, or a test) calls Step(); the rest may be called by any thread, is quick and never
// waits for a disk, except Subscribe's subscriptions, which read the log.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/codec/payload.h"
#include "common/round/record.h"
#include "common/update/votes.h"
#include "distro/v1/link.pb.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/session.pb.h"
#include "distro/v1/update.pb.h"
#include "server/log/admission_store.h"
#include "server/log/round_log.h"
#include "server/log/run_identity.h"
#include "server/log/snapshot_store.h"
#include "server/round/agreement.h"
#include "server/round/deadline.h"
#include "server/round/log_rate.h"
#include "server/round/reference_state.h"
#include "server/round/round.h"
#include "server/round/round_policy.h"
#include "server/round/run_observer.h"
#include "server/round/run_status.h"
#include "server/round/update_times.h"
#include "server/session/membership.h"
#include "server/subscription/broadcast.h"
#include "server/subscription/subscription.h"

namespace distro::server {

struct RoundManagerOptions {
  absl::Duration suspect_after = absl::Seconds(6);       // silence after which nobody waits for it
  absl::Duration lease = absl::Seconds(30);              // silence after which a worker has gone
  absl::Duration heartbeat_interval = absl::Seconds(2);  // told to workers; below lease / 3
  absl::Duration drain_grace = absl::Seconds(30);        // how long a drain lets the round go on
  uint64_t ring_bytes = uint64_t{256}
                        << 20;  // of recent results in memory; above it subscribers read the log
};

// An upload that was let in.
struct UploadTicket {
  v1::WorkerIdentity worker;
  RoundId round;
  std::vector<uint32_t> held;  // segments that need not be sent
};

// The run's files that the manager writes or reads; borrowed.
struct RunFiles {
  RoundLog* rounds = nullptr;
  AdmissionStore* admission = nullptr;  // from now on nobody else writes it
  const SnapshotStore* snapshots = nullptr;
};

class RoundManager {
 public:
  // Continues where `round_log` ends, with what operators decided. All pointers are borrowed. DataLoss: the newest records
  // cannot be read. InvalidArgument: no round of this run could be committed
  // (common/round_log/header_bound.h).
  static absl::StatusOr<std::unique_ptr<RoundManager>> Create(
      std::shared_ptr<const RunIdentity> run, EpochId epoch, const RunFiles& files,
      const Clock* clock, Log* log, RunObserver* observer, const RoundManagerOptions& options);

  // Sessions. Statuses as in docs/protocol.md.
  absl::StatusOr<v1::JoinResponse> Join(const v1::JoinRequest& request);
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request);
  void Leave(const v1::LeaveRequest& request);

  // Uploads: first the header, then each payload that passed ValidateUpdate against Expectation(). InvalidArgument: the
  // tensors' hashes are neither none nor one each, or do not make the state hash.
  absl::StatusOr<UploadTicket> BeginUpload(const v1::UploadHeader& header);
  PayloadExpectation Expectation(RoundId round, SegmentId segment) const;
  absl::StatusOr<Taken> AddPayload(const UploadTicket& ticket, SegmentId segment,
                                   SharedBytes payload);

  // What came with this ticket was refused: not what an encoder makes. A rule counts these.
  void CountInvalidUpload(const UploadTicket& ticket);

  // Of a worker in session, or of a follower without one. FailedPrecondition: no session, another run, "diverged": the hash
  // is not in our chain, "pruned": results from there on are dropped, or damaged and a later
  // snapshot is there.
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(
      const v1::SubscribeRoundsRequest& request);

  // What operators decide (round_admin.cc); durable before the answer, so these wait for the disk. Reason "disk": not
  // stored, nothing changed. Reasons of a request are at most 200 bytes (InvalidArgument).
  absl::Status Pause(absl::string_view reason);
  absl::Status Resume();
  // Quarantines a name, known or not: its streams end, and what it sent leaves the open round's segments that are not closed.
  absl::Status Evict(const std::string& name, absl::string_view reason);
  // NotFound: the name is not in quarantine.
  absl::Status Admit(const std::string& name);

  // What an archiver's replay found: a witness. That it contradicts its round's reference is told,
  // and moves nobody. FailedPrecondition: another run, "diverged". InvalidArgument: not one hash a
  // tensor, a round ahead of the log, or, of round 0, not the hashes of the run's own snapshot.
  absl::Status ReportState(const v1::ReportStateRequest& request);

  // Does all that is due and returns the monotonic time at which there may be more. A disk that fails is tried again
  // every second. An error is final: the process must stop (another one took its place: fenced; memory or files are
  // damaged).
  absl::StatusOr<absl::Duration> Step();
  // Blocks until something happened, `until` (monotonic) or Stop().
  void WaitForWork(absl::Duration until);

  // Nobody new is let in, the workers are told, and the open round goes on until it is committed, its deadline passes, or
  // drain_grace is over; then subscriptions end. Once: later calls change nothing.
  void Drain();
  bool draining() const;
  // Ends everything now.
  void Stop();
  // Blocks until a drain is over or Stop() was called, at most `timeout` of real time.
  void AwaitDrained(absl::Duration timeout) const;

  RunStatus status() const;  // round_status.cc
  const RunIdentity& run() const { return *run_; }
  const Layout& layout() const { return *run_->layout; }
  EpochId epoch() const { return epoch_; }
  // What a worker's link has to carry (link_needs.cc).
  v1::LinkNeeds LinkNeeds() const;
  v1::SnapshotInfo newest_snapshot() const { return snapshots_->List().front(); }
  uint64_t MaxSubscriberLag() const { return broadcast_.MaxLag(); }
  uint64_t DamagedRecordCount() const;

 private:
  struct ClosedSegment {
    SegmentId segment;
    std::vector<SharedBytes> payloads;  // ascending by worker
    absl::Duration last_in;
    std::vector<Contribution> audited = {};  // of the segment that is audited in this round
  };
  struct Work {
    enum Kind { kNone, kAdmission, kStart, kOpen, kReopen, kClose, kCommit, kDone, kDrained };
    Kind kind = kNone;
    absl::Duration at = absl::InfiniteDuration();  // kNone: when to look again
    std::vector<ClosedSegment> closed = {};        // kClose
  };

  RoundManager(std::shared_ptr<const RunIdentity> run, EpochId epoch, const RunFiles& files,
               const Clock* clock, Log* log, RunObserver* observer,
               const RoundManagerOptions& options);
  absl::Status Restore();
  absl::Status RestoreRounds() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The thread's frame (round_manager.cc).
  absl::Status HandleError(const absl::Status& error);
  void NoteDiskError(const absl::Status& error) ABSL_LOCKS_EXCLUDED(mu_);
  void NoteDiskSuccess() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Decides what is due (round_decisions.cc).
  Work NextWork();
  Work NextDrainWork(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Work NextOpenWork(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Between rounds a pause shows at once; an open round ends first.
  void ShowPause() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Work NextRoundWork(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Work CloseDecided(const RoundDecision& decision) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<std::string> CountedWithoutSamples() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  RoundPolicyOptions Policy() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetReason(v1::RunState state, std::string reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Does it (round_steps.cc, round_commit.cc); on the round thread, heavy work outside the mutex.
  absl::Status Do(const Work& work);
  absl::Status WriteStart();
  void OpenRound();
  void ReopenRound();
  absl::Status CloseSegments(absl::Span<const ClosedSegment> closed);
  absl::Status PublishSegment(RoundId round, const ClosedSegment& closed,
                              const absl::StatusOr<SegmentResult>& result, const Votes& votes);
  void StoreSegment(SegmentId segment);
  absl::Status StoreSegments();
  void EndNow() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status WriteAdmission() ABSL_LOCKS_EXCLUDED(admin_mu_, mu_);
  absl::Status Decree(const v1::StoredAdmission& admission)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(admin_mu_);
  absl::Status CommitRound();
  std::string MakeHeader();
  void FinishRound(const v1::RoundHeader& header);

  // What rounds teach about their members (round_members.cc).
  void OnMemberChange(const Worker& worker, absl::string_view word)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TimeUpdate(RoundId round, const std::string& worker, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  SegmentId DrawAudited(RoundId round) const;
  absl::Status Audit(RoundId round, const ClosedSegment& closed, const Votes& votes);
  // Returns whose state hash differs.
  std::set<std::string> JudgeStates(const v1::RoundHeader& header)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellContradiction(RoundId round) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void NoteMismatch(const std::string& where) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void JudgeMembers(const v1::RoundHeader& header) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  v1::RoundOpen MakeOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Requests (round_sessions.cc, round_uploads.cc).
  // OK, or "fenced": the caller saw a later epoch of this run than ours. That is its word only, so nobody else is
  // refused; the log has it once.
  absl::Status CheckEpochSeen(uint64_t epoch) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status DrainingError() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<v1::JoinResponse> JoinLocked(const v1::JoinRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Progress ProgressOf(const v1::HeartbeatRequest& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckRound(RoundId round, const std::string& worker, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckChain(RoundId from, uint64_t hash) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckLink(uint64_t download_bytes_per_second) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  v1::RunState VisibleState() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Poke() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant after construction.
  const std::shared_ptr<const RunIdentity> run_;
  const EpochId epoch_;
  RoundLog* const round_log_;
  const SnapshotStore* const snapshots_;
  const Clock* const clock_;
  Log* const log_;
  RunObserver* const observer_;
  const RoundManagerOptions options_;
  const uint32_t max_workers_;  // the run's, or fewer where a round's header has no room for them
  const absl::Duration started_at_;

  // Have their own locking.
  Broadcast broadcast_;
  DamagedRecords damaged_;

  // Of the round thread.
  std::unique_ptr<RecordWriter> writer_;  // null: not begun, or a write failed
  std::vector<SharedBytes> results_;      // [segments], of the open round
  std::string header_;  // once writing the record began; a retry writes the same bytes

  absl::Mutex admin_mu_ ABSL_ACQUIRED_BEFORE(mu_);  // held while a decision is written
  AdmissionStore* const admission_ ABSL_PT_GUARDED_BY(admin_mu_);

  mutable absl::Mutex mu_;
  absl::CondVar changed_;
  bool poked_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Duration> drain_ends_ ABSL_GUARDED_BY(mu_);  // set: draining
  bool ended_ ABSL_GUARDED_BY(mu_) = false;                        // drained or stopped
  bool later_epoch_seen_ ABSL_GUARDED_BY(mu_) = false;
  std::string disk_error_ ABSL_GUARDED_BY(mu_);
  bool paused_ ABSL_GUARDED_BY(mu_) = false;
  std::string pause_reason_ ABSL_GUARDED_BY(mu_);
  Membership membership_ ABSL_GUARDED_BY(mu_);
  std::map<std::string, absl::Duration, std::less<>> state_since_
      ABSL_GUARDED_BY(mu_);  // of workers that membership_ knows; not there: since the start
  uint64_t quarantines_written_ ABSL_GUARDED_BY(mu_) = 0;  // of membership_.quarantine_changes()
  ReferenceState references_ ABSL_GUARDED_BY(mu_);
  std::string mismatch_ ABSL_GUARDED_BY(mu_);  // the last one, for people
  Agreement agreement_ ABSL_GUARDED_BY(mu_);
  UpdateTimes update_times_ ABSL_GUARDED_BY(mu_);
  AdaptiveDeadline adaptive_deadline_ ABSL_GUARDED_BY(mu_);
  LogRate log_rate_ ABSL_GUARDED_BY(mu_);
  absl::Duration deadline_ ABSL_GUARDED_BY(mu_) = absl::InfiniteDuration();  // of the open round
  std::optional<Round> round_ ABSL_GUARDED_BY(mu_);
  bool opened_before_ ABSL_GUARDED_BY(mu_) = false;  // a round was opened in this epoch
  bool by_deadline_ ABSL_GUARDED_BY(mu_) = false;    // the open round, in some segment
  RoundId head_ ABSL_GUARDED_BY(mu_);                // open, or opens next
  SlotPlan plan_ ABSL_GUARDED_BY(mu_);               // of head_ and head_ + 1
  absl::Duration retry_at_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  v1::RunState state_ ABSL_GUARDED_BY(mu_) = v1::RUN_STATE_WAITING;
  std::string reason_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::server
