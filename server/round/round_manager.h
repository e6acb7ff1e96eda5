// A run's rounds: owns their state and the classes that work on it, and answers the requests of
// peers (docs/protocol.md).
//
//   SharedRun           the mutex and the state under it:
//     RunPosition       head, samples, the open round
//     Control           state, pause, drain
//     RunWorkers        workers, their states and times
//     Integrity         verdicts on states and votes
//     PeerChecks        run, epoch and chain of a peer
//     DiskTrouble       failures of the disk
//   OperatorDecisions   decisions: written first, then acted on
//   RoundThread         finds the due task and executes it; Recorder writes the record
//
// Thread-safe. Its functions are quick and do not wait for a disk, except subscriptions, which read
// the log. What it hides: which of these parts a request needs, under one lock. Decisions and the
// round thread's work are not passed through it.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/shared_bytes.h"
#include "common/feed/record_source.h"
#include "common/feed/subscription.h"
#include "distro/v1/link.pb.h"
#include "distro/v1/round.pb.h"
#include "distro/v1/session.pb.h"
#include "distro/v1/update.pb.h"
#include "server/round/operator_decisions.h"
#include "server/round/round_thread.h"
#include "server/round/run_status.h"
#include "server/round/shared_run.h"

namespace distro::server {

// An accepted upload.
struct UploadTicket {
  v1::WorkerIdentity worker;
  RoundId round;
  std::vector<uint32_t> held;  // segments that need not be sent (Round::Held)
  v1::StepParameters step;     // of the round
};

class RoundManager {
 public:
  // Continues at the end of the log, with the decisions of operators. DataLoss: the newest records
  // cannot be read. InvalidArgument: no round of this run could be committed.
  static absl::StatusOr<std::unique_ptr<RoundManager>> Create(const RunContext& context);

  // Sessions. Statuses as in docs/protocol.md.
  absl::StatusOr<v1::JoinResponse> Join(const v1::JoinRequest& request);
  absl::StatusOr<v1::HeartbeatResponse> Heartbeat(const v1::HeartbeatRequest& request);
  void Leave(const v1::LeaveRequest& request);

  // Uploads: first the header, then each payload that passed the method's CheckUpdate.
  // InvalidArgument: as CheckHashes (server/round/integrity.h).
  absl::StatusOr<UploadTicket> BeginUpload(const v1::UploadHeader& header);
  // What AddPayload would return now. Only a new payload needs CheckUpdate, which costs much.
  absl::StatusOr<PutResult> PreviewPayload(const UploadTicket& ticket, SegmentId segment,
                                           const ReceivedPayload& payload);
  absl::StatusOr<PutResult> AddPayload(const UploadTicket& ticket, SegmentId segment,
                                       ReceivedPayload payload);
  // A payload of this ticket was refused as invalid. A rule quarantines after several in a row.
  void CountInvalidUpload(const UploadTicket& ticket);

  // Subscribes a worker in session, or a follower without one. FailedPrecondition: no session,
  // another run, or as PeerChecks::CheckChain and CheckServable.
  absl::StatusOr<std::unique_ptr<Subscription>> Subscribe(
      const v1::SubscribeRoundsRequest& request);

  // A segment's result by its SHA-256: its bytes, of the open round, or its record, whose payload
  // is not verified. NotFound: there is none. FailedPrecondition: it was pruned. DataLoss
  // "damaged". Other errors: of the disk.
  using FoundResult = std::variant<SharedBytes, std::shared_ptr<const StoredRecord>>;
  absl::StatusOr<FoundResult> FindResult(const RoundPlace& place, absl::string_view sha256) const;
  // Reads a segment's payload of a record that FindResult gave. DataLoss "damaged". Other errors:
  // of the disk.
  absl::Status VerifyResult(const RoundPlace& place,
                            std::shared_ptr<const StoredRecord> record) const;

  // Takes the state hashes of an archiver's replay. FailedPrecondition: another run, "diverged".
  // InvalidArgument: a round ahead of the log, or as Integrity::CheckReport.
  absl::Status ReportState(const v1::ReportStateRequest& request);

  // What operators decide, and the work of the round thread.
  OperatorDecisions& decisions() { return decisions_; }
  RoundThread& round_thread() { return round_thread_; }
  const RoundThread& round_thread() const { return round_thread_; }

  // Refuses new workers, tells the others, and lets the open round continue until it is committed,
  // its deadline passes, or drain_grace is over; then ends subscriptions. Later calls do nothing.
  void Drain();
  // Ends everything now.
  void Stop();
  // Blocks until a drain is over or Stop() was called, at most `timeout` of real time.
  void AwaitDrained(absl::Duration timeout) const;

  RunStatus status() const;
  const RunIdentity& run() const { return *shared_->context.run; }
  const Layout& layout() const { return *run().layout; }
  // URLs of mirrors of the objects.
  const std::vector<std::string>& mirrors() const { return shared_->context.options.mirrors; }
  // The bandwidth that a worker's link needs.
  v1::LinkNeeds LinkNeeds() const;
  v1::SnapshotInfo newest_snapshot() const {
    return shared_->context.files.snapshots->List().front();
  }
  uint64_t MaxSubscriberLag() const { return shared_->broadcast.MaxLag(); }
  uint64_t DamagedRecordCount() const;

 private:
  explicit RoundManager(const RunContext& context)
      : shared_(std::make_unique<SharedRun>(context)),
        decisions_(shared_.get()),
        round_thread_(shared_.get(), &decisions_) {}

  v1::JoinResponse MakeJoinResponse(const SharedRun::State& run) const;
  absl::Status CheckUpload(SharedRun::State& run, RoundId round, const std::string& worker) const;
  // Whether the ticket still entitles to send payloads.
  absl::Status CheckTicket(SharedRun::State& run, const UploadTicket& ticket) const;

  const std::unique_ptr<SharedRun> shared_;
  OperatorDecisions decisions_;
  RoundThread round_thread_;
};

}  // namespace distro::server
