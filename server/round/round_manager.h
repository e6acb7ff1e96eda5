// The run as it goes: sessions, the open round, the log and the broadcast, in one owner of the mutex and the clock.
// The thinking is in Transition(), Decide() and CombineSegment(); here is the acting (docs/protocol.md).
//
// Thread-safe. One thread (RoundThread, or a test) calls Step(); the rest may be called by any thread, is quick and never
// waits for a disk, except Subscribe's subscriptions, which read the log.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/codec/payload.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/session.pb.h"
#include "distro/v1/update.pb.h"
#include "server/log/round_log.h"
#include "server/log/run_store.h"
#include "server/round/broadcast.h"
#include "server/round/round.h"
#include "server/round/round_policy.h"
#include "server/round/run_observer.h"
#include "server/round/subscription.h"
#include "server/session/membership.h"

namespace distro::server {

struct RoundManagerOptions {
  absl::Duration lease = absl::Seconds(30);              // silence after which a worker has gone
  absl::Duration heartbeat_interval = absl::Seconds(2);  // told to workers; below lease / 3
  uint64_t ring_bytes = uint64_t{256}
                        << 20;  // of recent results in memory; above it subscribers read the log
};

// A view for pages, rpcs and metrics.
struct RunStatus {
  v1::RunState state = v1::RUN_STATE_WAITING;
  std::string reason;  // what it waits for
  EpochId epoch;
  RoundId round;          // open, or opens next
  uint64_t log_hash = 0;  // of the last record
  std::vector<Worker> workers;
  absl::Duration now;  // monotonic: last_seen counts from the same origin
};

// An upload that was let in.
struct UploadTicket {
  v1::WorkerIdentity worker;
  RoundId round;
  std::vector<uint32_t> held;  // segments that need not be sent
};

class RoundManager {
 public:
  // Continues where `log` ends. `round_log`, `clock`, `log` and `observer` are borrowed. DataLoss: the newest records
  // cannot be read.
  static absl::StatusOr<std::unique_ptr<RoundManager>> Create(
      std::shared_ptr<const RunIdentity> run, EpochId epoch, RoundLog* round_log,
      const Clock* clock, Log* log, RunObserver* observer, const RoundManagerOptions& options);

  // Sessions. Statuses as in docs/protocol.md.
  absl::StatusOr<v1::JoinResponse> Join(const v1::JoinRequest& request);
  v1::HeartbeatResponse Heartbeat(const v1::HeartbeatRequest& request);
  void Leave(const v1::LeaveRequest& request);

  // Uploads: first the header, then each payload that passed ValidateUpdate against Expectation().
  absl::StatusOr<UploadTicket> BeginUpload(const v1::UploadHeader& header);
  PayloadExpectation Expectation(RoundId round, SegmentId segment) const;
  absl::StatusOr<Taken> AddPayload(const UploadTicket& ticket, SegmentId segment,
                                   SharedBytes payload);

  // FailedPrecondition: no session, another run, or "diverged": the hash is not in our chain.
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(
      const v1::SubscribeRoundsRequest& request);

  // Does all that is due and returns the monotonic time at which there may be more. An error is final: the process must
  // stop (another one wrote a round: fenced).
  absl::StatusOr<absl::Duration> Step();
  // Blocks until something happened, `until` (monotonic) or Stop().
  void WaitForWork(absl::Duration until);

  // Says so to the workers and ends the subscriptions; nothing new is let in.
  void Drain();
  bool draining() const;

  RunStatus status() const;
  const RunIdentity& run() const { return *run_; }
  const Layout& layout() const { return *run_->layout; }
  EpochId epoch() const { return epoch_; }
  uint64_t MaxSubscriberLag() const { return broadcast_.MaxLag(); }

 private:
  struct ClosedSegment {
    SegmentId segment;
    std::vector<SharedBytes> payloads;  // ascending by worker
    absl::Duration last_in;
  };
  struct Work {
    enum Kind { kNone, kStart, kOpen, kReopen, kClose, kCommit, kDone } kind = kNone;
    absl::Duration at = absl::InfiniteDuration();  // kNone: when to look again
    std::vector<ClosedSegment> closed = {};        // kClose
  };

  RoundManager(std::shared_ptr<const RunIdentity> run, EpochId epoch, RoundLog* round_log,
               const Clock* clock, Log* log, RunObserver* observer,
               const RoundManagerOptions& options);
  absl::Status Restore();

  // Decides what is due (round_manager.cc).
  Work NextWork();
  Work NextOpenWork(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Work NextRoundWork(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Work CloseDecided(const RoundDecision& decision) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::vector<std::string> ActiveWithoutSamples() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ExpireLeases(absl::Duration now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SetReason(v1::RunState state, std::string reason) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Does it (round_steps.cc); on the round thread, heavy work outside the mutex.
  absl::Status Do(const Work& work);
  absl::Status WriteStart();
  void OpenRound();
  void ReopenRound();
  absl::Status CloseSegment(const ClosedSegment& closed);
  absl::Status StoreSegments();
  absl::Status CommitRound();
  std::string MakeHeader();
  void FinishRound(const v1::RoundHeader& header);
  v1::RoundOpen MakeOpen() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Requests (round_sessions.cc).
  absl::StatusOr<v1::JoinResponse> JoinLocked(const v1::JoinRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  Progress ProgressOf(const v1::HeartbeatRequest& request) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckRound(RoundId round, absl::Duration now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status CheckChain(RoundId from, uint64_t hash) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SyncExpected(absl::string_view worker) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  v1::RunState VisibleState() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Poke() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Constant after construction.
  const std::shared_ptr<const RunIdentity> run_;
  const EpochId epoch_;
  RoundLog* const round_log_;
  const Clock* const clock_;
  Log* const log_;
  RunObserver* const observer_;
  const RoundManagerOptions options_;
  const RoundPolicyOptions policy_;
  const absl::Duration started_at_;

  // Have their own locking.
  Broadcast broadcast_;

  // Of the round thread.
  std::unique_ptr<RecordWriter> writer_;  // null: not begun, or a write failed
  std::vector<SharedBytes> results_;      // [segments], of the open round
  std::string header_;  // once writing the record began; a retry writes the same bytes

  mutable absl::Mutex mu_;
  absl::CondVar changed_;
  bool poked_ ABSL_GUARDED_BY(mu_) = false;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  Membership membership_ ABSL_GUARDED_BY(mu_);
  std::optional<Round> round_ ABSL_GUARDED_BY(mu_);
  bool opened_before_ ABSL_GUARDED_BY(mu_) = false;        // a round was opened in this epoch
  bool by_deadline_ ABSL_GUARDED_BY(mu_) = false;          // the open round, in some segment
  RoundId head_ ABSL_GUARDED_BY(mu_);                      // open, or opens next
  std::vector<v1::Slot> slots_ ABSL_GUARDED_BY(mu_);       // of head_
  std::vector<v1::Slot> next_slots_ ABSL_GUARDED_BY(mu_);  // of head_ + 1
  uint64_t next_sample_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Duration retry_at_ ABSL_GUARDED_BY(mu_) = -absl::InfiniteDuration();
  v1::RunState state_ ABSL_GUARDED_BY(mu_) = v1::RUN_STATE_WAITING;
  std::string reason_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::server
