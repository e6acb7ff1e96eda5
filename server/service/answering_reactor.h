// A bidirectional stream that handles one message at a time and answers it; the base class of
// UploadUpdate, CreateRun and MeasureLink. The subclass handles messages and queues answers. This
// class does the rest: its place among the open streams, reading, writing, half-close, cancellation
// and the end. When kMaxQueued answers wait for a slow reader, it stops reading. It holds no
// message between two reads.
//
// Deletes itself when gRPC is done with it. Reads, writes and the limiter's stop run on different
// threads; the mutex serialises them.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/status_macros.h"
#include "common/net/rpc/status.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "server/connections/connection_table.h"
#include "server/limits/stream_limiter.h"
#include "server/service/raw_message.h"

namespace distro::server {

template <typename Request, typename Response>
class AnsweringReactor : public RawBidiReactor {
 public:
  // `context` is borrowed: gRPC keeps it as long as the reactor. Reports every message to
  // `connections`, which is borrowed too.
  AnsweringReactor(grpc::CallbackServerContext* context, ConnectionTable* connections)
      : context_(context),
        connections_(connections),
        endpoint_(EndpointOfGrpcPeer(context->peer())) {}

  void OnReadDone(bool ok) final {
    if (Over()) return;
    stream_->PauseTimeout();
    if (!ok) return End(OnHalfClose());
    if (absl::Status status = HandleMessage(); !status.ok()) return End(std::move(status));
    stream_->ResumeTimeout();
    absl::MutexLock lock(&mu_);
    if (finished_ || end_) return;
    if (answers_.size() >= kMaxQueued) {
      reading_paused_ = true;
    } else {
      StartRead(&message_);
    }
  }

  void OnWriteDone(bool ok) final {
    absl::MutexLock lock(&mu_);
    answers_.pop_front();
    if (!ok) answers_.clear();
    if (!answers_.empty()) {
      StartWrite(&answers_.front());
    } else if (end_) {
      FinishLocked(*end_);
      return;
    }
    if (std::exchange(reading_paused_, false)) StartRead(&message_);
  }

  void OnDone() final { delete this; }

 protected:
  // Takes a place among the open streams and starts to read. The subclass calls it at the end of
  // its constructor. The stream also ends with a returned error, which the subclass may count.
  // `caller`: name of the credential that the place is charged to; empty: none, or not known yet.
  absl::Status Begin(StreamLimiter* limiter, StreamKind kind, const std::string& caller = "") {
    auto stream = limiter->Open(kind, [this](const absl::Status& status) { Stop(status); });
    if (stream.ok()) {
      stream_ = *std::move(stream);
      if (!caller.empty()) stream_->Identify(caller, 0);
    }
    absl::MutexLock lock(&mu_);
    if (!stream.ok()) {
      FinishLocked(stream.status());
      return stream.status();
    }
    if (!finished_) StartRead(&message_);
    return absl::OkStatus();
  }

  // Handles one message. An error ends the stream.
  virtual absl::Status OnMessage(const Request& request) = 0;
  // The client has finished sending, or is gone: returns the stream's final status.
  virtual absl::Status OnHalfClose() = 0;
  // Received bytes that are not a Request: returns the stream's final status.
  virtual absl::Status OnUnreadable(const absl::Status& status) { return status; }
  // The limiter stopped the stream. Called by any thread: be quick and do not call back.
  virtual void OnStopped(const absl::Status& /*status*/) {}

  // Queues an answer. Only from OnMessage.
  void Answer(const Response& response) {
    grpc::ByteBuffer bytes = SerializeMessage(response);
    absl::MutexLock lock(&mu_);
    if (finished_ || end_) return;
    answers_.push_back(std::move(bytes));
    if (answers_.size() == 1) StartWrite(&answers_.front());
  }

  // For the reading side only.
  LimitedStream* stream() { return stream_.get(); }

 private:
  static constexpr size_t kMaxQueued = 64;

  bool Over() {
    absl::MutexLock lock(&mu_);
    return finished_ || end_.has_value();
  }

  absl::Status HandleMessage() {
    connections_->OnMessage(endpoint_, message_.Length());
    Request request;
    const absl::Status parsed = ParseMessage(message_, &request);
    message_.Clear();
    return parsed.ok() ? OnMessage(request) : OnUnreadable(parsed);
  }

  // Ends the stream after the queued answers. Only from OnReadDone, which then stops reading.
  void End(absl::Status status) {
    stream_->ResumeTimeout();  // for a client that does not read its answers
    absl::MutexLock lock(&mu_);
    if (finished_ || end_) return;
    if (answers_.empty()) {
      FinishLocked(status);
    } else {
      end_ = std::move(status);
    }
  }

  // Called by the limiter: ends the stream at once. A write in progress delays gRPC's status, so
  // the call is cancelled.
  void Stop(const absl::Status& status) {
    absl::MutexLock lock(&mu_);
    if (finished_) return;
    if (!end_) OnStopped(status);
    if (answers_.empty()) return FinishLocked(status);
    if (!end_) end_ = status;
    context_->TryCancel();
  }

  void FinishLocked(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    finished_ = true;
    Finish(ToGrpcStatus(status));
  }

  grpc::CallbackServerContext* const context_;
  ConnectionTable* const connections_;
  const std::string endpoint_;  // of the peer
  grpc::ByteBuffer message_;    // of the reading side

  absl::Mutex mu_;
  std::deque<grpc::ByteBuffer> answers_ ABSL_GUARDED_BY(mu_);  // the first is being written
  bool reading_paused_ ABSL_GUARDED_BY(mu_) = false;
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);  // once the answers are written

  std::unique_ptr<LimitedStream> stream_;  // destroyed first: no Stop afterwards
};

}  // namespace distro::server
