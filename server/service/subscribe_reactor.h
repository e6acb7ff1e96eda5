// SubscribeRounds: writes the frames of a Subscription, one at a time. A slow reader delays only
// itself; it holds its cursor and one frame, whose bytes all subscribers share.
//
// The broadcast's thread calls Wake, and gRPC completes writes; either writes the next frame if no
// write is in progress. Owns itself until OnDone; a running Wake also holds a reference.
#pragma once

#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/log.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/auth/authorizer.h"
#include "server/call/observers.h"
#include "server/limits/stream_limiter.h"
#include "server/round/round_manager.h"
#include "server/service/raw_message.h"

namespace distro::server {

class SubscribeReactor final : public RawWriteReactor, public Listener {
 public:
  // Answers `request`, a serialized SubscribeRoundsRequest. `manager` is nullptr while there is no
  // run. All but `caller` and `request` are borrowed and outlive the stream. Return the result to
  // gRPC.
  static SubscribeReactor* Start(grpc::CallbackServerContext* context, const Caller& caller,
                                 RoundManager* manager, StreamLimiter* limiter,
                                 TransferObserver* observer, Log* log,
                                 const grpc::ByteBuffer& request);

  void Wake() override { Pump(); }

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override { self_.reset(); }

 private:
  SubscribeReactor(grpc::CallbackServerContext* context, TransferObserver* observer, Log* log)
      : context_(context), observer_(observer), log_(log) {}
  absl::Status Subscribe(const Caller& caller, RoundManager* manager, StreamLimiter* limiter,
                         const grpc::ByteBuffer& request);
  absl::Status EndOf(const absl::Status& status) const;
  // Called by the limiter: ends the stream at once. A write in progress would delay the status, so
  // the call is cancelled.
  void Stop(const absl::Status& status);
  void FinishLocked(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Pump();
  // Whether this thread may look for the next frame now.
  bool EnterPump();
  // Handles the result of the lookup; returns true if it must look again.
  bool LeavePump(absl::StatusOr<SharedBytes> next);

  grpc::CallbackServerContext* const context_;
  TransferObserver* const observer_;
  Log* const log_;
  std::unique_ptr<Subscription> subscription_;  // used by the one thread that pumps
  std::shared_ptr<SubscribeReactor> self_;
  grpc::ByteBuffer message_;  // in flight

  absl::Mutex mu_;
  bool pumping_ ABSL_GUARDED_BY(mu_) = false;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool again_ ABSL_GUARDED_BY(mu_) = false;  // a Wake came while another thread wrote
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status stopped_ ABSL_GUARDED_BY(mu_);  // OK: not stopped

  std::unique_ptr<LimitedStream> stream_;  // destroyed first: no Stop afterwards
};

}  // namespace distro::server
