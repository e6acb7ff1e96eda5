// A bidirectional stream that answers what it reads, one message at a time: the turns that UploadUpdate and CreateRun
// share. The subclass handles a message and queues answers; reading, writing, half-close, cancellation and the end are
// done here. At most kMaxQueued answers wait for a slow reader; then nothing more is read.
//
// Deletes itself when gRPC is done with it. Reads and writes finish on different threads; the mutex joins them.
#pragma once

#include <deque>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/rpc/status.h"
#include "grpcpp/support/server_callback.h"

namespace distro::server {

template <typename Request, typename Response>
class AnsweringReactor : public grpc::ServerBidiReactor<Request, Response> {
 public:
  void OnReadDone(bool ok) final {
    if (!ok) return End(OnHalfClose());
    if (absl::Status status = OnMessage(request_); !status.ok()) return End(status);
    absl::MutexLock lock(&mu_);
    if (answers_.size() >= kMaxQueued) {
      reading_paused_ = true;
    } else {
      this->StartRead(&request_);
    }
  }

  void OnWriteDone(bool ok) final {
    absl::MutexLock lock(&mu_);
    answers_.pop_front();
    if (!ok) answers_.clear();
    if (!answers_.empty()) {
      this->StartWrite(&answers_.front());
    } else if (end_) {
      this->Finish(ToGrpcStatus(*end_));
      return;
    }
    if (std::exchange(reading_paused_, false)) this->StartRead(&request_);
  }

  void OnDone() final { delete this; }

 protected:
  // Called by the subclass when it is complete.
  void Begin() { this->StartRead(&request_); }

  // One message. An error ends the stream with it.
  virtual absl::Status OnMessage(const Request& request) = 0;
  // The client sends nothing more (or is gone): what the stream ends with.
  virtual absl::Status OnHalfClose() = 0;

  // Queues an answer. Only from OnMessage.
  void Answer(Response response) {
    absl::MutexLock lock(&mu_);
    answers_.push_back(std::move(response));
    if (answers_.size() == 1) this->StartWrite(&answers_.front());
  }

 private:
  static constexpr size_t kMaxQueued = 64;

  // After the queued answers. Only from OnReadDone, which does not read on.
  void End(absl::Status status) {
    absl::MutexLock lock(&mu_);
    if (answers_.empty()) {
      this->Finish(ToGrpcStatus(status));
    } else {
      end_ = std::move(status);
    }
  }

  Request request_;  // of the reading side

  absl::Mutex mu_;
  std::deque<Response> answers_ ABSL_GUARDED_BY(mu_);  // the first is being written
  bool reading_paused_ ABSL_GUARDED_BY(mu_) = false;
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mu_);
};

}  // namespace distro::server
