// An Exchange with an aggregator over gRPC (docs/exchange.md).
//
// Control (Join, Heartbeat, Leave), uploads, and downloads (subscription, snapshot) each have their
// own connection. A session has three threads (RunningSession). Leave and the destructor end and
// join them. After Leave, or after a session that ended by itself, Join may begin another session
// unless Stop was called.
//
// Thread-safety as in Exchange: one thread calls, Stop and stats come from any.
#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/log.h"
#include "common/client/connection.h"
#include "common/client/exchange/exchange.h"
#include "common/client/exchange/transfer_meter.h"
#include "common/client/follow/round_feed.h"
#include "common/client/member/heartbeat.h"
#include "common/client/member/member_state.h"
#include "common/client/member/session_context.h"
#include "common/client/member/uploader.h"
#include "common/feed/event_queue.h"

namespace distro {

struct Connections {
  std::unique_ptr<Connection> control, upload, download;
};

// A session with its threads: Heartbeat runs from construction, RoundFeed and Uploader from Follow.
// They share state only through MemberState. One thread calls; Shutdown ends and joins the others.
class RunningSession {
 public:
  // `context.state` is `state`; the connections are borrowed.
  RunningSession(const SessionContext& context, std::shared_ptr<MemberState> state,
                 std::shared_ptr<EventQueue> queue, const Connections& connections,
                 absl::Duration heartbeat_interval);
  ~RunningSession() { Shutdown(); }
  RunningSession(const RunningSession&) = delete;
  RunningSession& operator=(const RunningSession&) = delete;

  // Called once. `layout` is borrowed.
  void Follow(const Layout* layout, RoundId next_round, uint64_t log_hash);
  bool following() const { return feed_ != nullptr; }

  // Ends and joins all threads. Idempotent.
  void Shutdown();

  const SessionContext& context() const { return context_; }
  MemberState* state() { return state_.get(); }
  EventQueue* queue() { return queue_.get(); }
  Heartbeat* heartbeat() { return &heartbeat_; }
  Uploader* uploader() { return &uploader_; }

 private:
  // Constant after construction.
  const SessionContext context_;
  const std::shared_ptr<MemberState> state_;
  const std::shared_ptr<EventQueue> queue_;
  const Connections& connections_;

  // Each has its own locking.
  Heartbeat heartbeat_;
  Uploader uploader_;
  std::unique_ptr<RoundFeed> feed_;

  std::thread heartbeat_thread_, upload_thread_;
};

class GrpcExchange final : public Exchange {
 public:
  // Connects at the first call. `log` and `clock` are borrowed. InvalidArgument: the URL.
  // FailedPrecondition: plaintext is not allowed.
  static absl::StatusOr<std::unique_ptr<GrpcExchange>> Create(const GrpcExchangeOptions& options,
                                                              Log* log,
                                                              const Clock* clock = Clock::Real());
  ~GrpcExchange() override;

  absl::StatusOr<v1::JoinResponse> Join(const v1::JoinRequest& request) override;
  absl::Status DownloadSnapshot(const v1::SnapshotInfo& snapshot, const std::string& path) override;
  absl::Status DownloadCompanion(const v1::CompanionFile& file, const std::string& path) override;
  absl::Status Follow(const Layout* layout, RoundId next_round, uint64_t log_hash) override;
  absl::StatusOr<RoundEvent> Next() override;
  bool Ready() override;
  void Upload(RoundUpdate update) override;
  void Report(RoundId next_round, uint64_t log_hash) override;
  void Leave(const std::string& reason) override;
  void Stop() override;
  bool stopped() const override;
  TransferStats stats() const override { return meter_.stats(clock_->MonotonicNow()); }

 private:
  GrpcExchange(const GrpcExchangeOptions& options, std::unique_ptr<Connections> connections,
               Log* log, const Clock* clock);

  // Makes `state` the one that Stop ends. Cancelled: Stop was called.
  absl::Status SetCurrent(std::shared_ptr<MemberState> state);
  // Joins the session's threads and keeps what a later session needs.
  void EndSession();
  SessionContext ContextOf(MemberState* state);

  // Constant after construction.
  const GrpcExchangeOptions options_;
  const std::unique_ptr<Connections> connections_;
  Log* const log_;
  const Clock* const clock_;

  TransferMeter meter_;  // has its own locking

  // Of the calling thread:
  std::unique_ptr<RunningSession> running_;  // null before Join and after Leave
  FirstContact contact_;
  std::string run_id_;  // of the last session that ended
  EpochId epoch_;       // the highest that session has seen

  mutable absl::Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  std::shared_ptr<MemberState> current_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<EventQueue> queue_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro
