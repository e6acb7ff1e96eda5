#include "worker/exchange/grpc_exchange.h"

#include <algorithm>
#include <thread>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/rpc/channel.h"
#include "common/rpc/status.h"
#include "worker/exchange/heartbeat.h"
#include "worker/exchange/reason_log.h"
#include "worker/exchange/retry.h"
#include "worker/exchange/snapshot_download.h"
#include "worker/exchange/subscription.h"
#include "worker/exchange/uploader.h"

namespace distro::worker {
namespace {

constexpr size_t kMaxReasonBytes = 200;  // LeaveRequest.reason

absl::Status StoppedError() { return absl::CancelledError("stopped"); }

// What Join said, within reason; 5 s when it said nothing.
absl::Duration HeartbeatInterval(const v1::JoinResponse& response) {
  if (!response.has_heartbeat_interval()) return absl::Seconds(5);
  const absl::Duration interval = absl::Seconds(response.heartbeat_interval().seconds()) +
                                  absl::Nanoseconds(response.heartbeat_interval().nanos());
  return std::clamp(interval, absl::Milliseconds(10), absl::Hours(1));
}

}  // namespace

// One stub a connection.
struct GrpcExchange::Stubs {
  std::unique_ptr<v1::AggregatorService::StubInterface> control, upload, download;
};

class GrpcExchange::Running {
 public:
  Running(const Background& background, std::shared_ptr<Session> session,
          std::shared_ptr<EventQueue> queue, const Stubs& stubs, absl::Duration heartbeat_interval)
      : background_(background),
        session_(std::move(session)),
        queue_(std::move(queue)),
        stubs_(stubs),
        heartbeat_(background, stubs.control.get(), heartbeat_interval),
        uploader_(background, stubs.upload.get()),
        heartbeat_thread_([this] { heartbeat_.Run(); }) {}

  ~Running() { Shutdown(); }

  void Follow(const Layout* layout, RoundId next_round, uint64_t log_hash) {
    session_->Update([&](SessionView& view) { view.next_round = next_round; });
    heartbeat_.Report(next_round, log_hash, nullptr);
    subscription_ = std::make_unique<Subscription>(background_, stubs_.download.get(), queue_.get(),
                                                   layout, next_round, log_hash);
    subscription_thread_ = std::thread([this] { subscription_->Run(); });
    upload_thread_ = std::thread([this] { uploader_.Run(); });
  }

  // Ends and joins all threads.
  void Shutdown() {
    session_->End(absl::CancelledError("left the run"));
    queue_->Close(absl::CancelledError("left the run"), /*drop=*/true);
    for (std::thread* thread : {&heartbeat_thread_, &subscription_thread_, &upload_thread_}) {
      if (thread->joinable()) thread->join();
    }
  }

  Session* session() { return session_.get(); }
  EventQueue* queue() { return queue_.get(); }
  Heartbeat* heartbeat() { return &heartbeat_; }
  Uploader* uploader() { return &uploader_; }
  const Background& background() const { return background_; }
  bool following() const { return subscription_ != nullptr; }

 private:
  const Background background_;
  const std::shared_ptr<Session> session_;
  const std::shared_ptr<EventQueue> queue_;
  const Stubs& stubs_;
  Heartbeat heartbeat_;
  Uploader uploader_;
  std::unique_ptr<Subscription> subscription_;
  std::thread heartbeat_thread_, subscription_thread_, upload_thread_;
};

absl::StatusOr<std::unique_ptr<GrpcExchange>> GrpcExchange::Create(
    const GrpcExchangeOptions& options, Log* log, const Clock* clock) {
  auto stubs = std::make_unique<Stubs>();
  for (auto* stub : {&stubs->control, &stubs->upload, &stubs->download}) {
    DISTRO_ASSIGN_OR_RETURN(const std::shared_ptr<grpc::Channel> channel,
                            OpenChannel(options.channel));
    *stub = v1::AggregatorService::NewStub(channel);
  }
  return std::unique_ptr<GrpcExchange>(new GrpcExchange(options, std::move(stubs), log, clock));
}

GrpcExchange::GrpcExchange(const GrpcExchangeOptions& options, std::unique_ptr<Stubs> stubs,
                           Log* log, const Clock* clock)
    : options_(options), stubs_(std::move(stubs)), log_(log), clock_(clock) {}

GrpcExchange::~GrpcExchange() { Stop(); }

Background GrpcExchange::BackgroundOf(Session* session) {
  return {.session = session, .options = &options_, .meter = &meter_, .log = log_, .clock = clock_};
}

absl::Status GrpcExchange::SetCurrent(std::shared_ptr<Session> session) {
  absl::MutexLock lock(&mu_);
  if (stopped_) return StoppedError();
  current_ = std::move(session);
  return absl::OkStatus();
}

absl::StatusOr<v1::JoinResponse> GrpcExchange::Join(const v1::JoinRequest& request) {
  if (running_ != nullptr) return absl::FailedPreconditionError("Join: the worker has a session");
  // Until there is an answer, a session without a run carries the cancellation.
  const auto joining = std::make_shared<Session>(request, v1::JoinResponse());
  DISTRO_RETURN_IF_ERROR(SetCurrent(joining));
  DISTRO_ASSIGN_OR_RETURN(v1::JoinResponse response, JoinUntilAnswered(joining.get()));
  const auto session = std::make_shared<Session>(request, response);
  const auto queue = std::make_shared<EventQueue>(options_.queued_events, options_.queued_bytes);
  {
    absl::MutexLock lock(&mu_);
    if (stopped_) return StoppedError();
    current_ = session;
    queue_ = queue;
  }
  running_ = std::make_shared<Running>(BackgroundOf(session.get()), session, queue, *stubs_,
                                       HeartbeatInterval(response));
  return response;
}

absl::StatusOr<v1::JoinResponse> GrpcExchange::JoinUntilAnswered(Session* session) {
  Backoff backoff(options_.backoff, session->worker().incarnation());
  ReasonLog reasons("waiting for the aggregator", log_, clock_);
  while (true) {
    v1::JoinResponse response;
    absl::Status status;
    {
      SessionCall call(session);
      call.context()->set_deadline(absl::ToChronoTime(absl::Now() + options_.rpc_timeout));
      status = FromGrpcStatus(stubs_->control->Join(call.context(), session->request(), &response));
    }
    if (session->ended()) return session->end_status();
    if (status.ok()) return response;
    if (!IsTransient(status)) return status;
    meter_.AddRetry();
    reasons.Failed(status.ToString());
    if (!session->Sleep(backoff.Next())) return session->end_status();
  }
}

absl::Status GrpcExchange::DownloadSnapshot(const v1::SnapshotInfo& snapshot,
                                            const std::string& path) {
  if (running_ == nullptr)
    return absl::FailedPreconditionError("DownloadSnapshot: Join comes first");
  return FetchSnapshot(running_->background(), stubs_->download.get(), snapshot, path);
}

absl::Status GrpcExchange::Follow(const Layout* layout, RoundId next_round, uint64_t log_hash) {
  if (running_ == nullptr) return absl::FailedPreconditionError("Follow: Join comes first");
  if (running_->following())
    return absl::FailedPreconditionError("Follow: the worker follows already");
  DISTRO_RETURN_IF_ERROR(running_->session()->end_status());
  running_->Follow(layout, next_round, log_hash);
  return absl::OkStatus();
}

absl::StatusOr<RoundEvent> GrpcExchange::Next() {
  if (running_ == nullptr || !running_->following()) {
    return absl::FailedPreconditionError("Next: Follow comes first");
  }
  return running_->queue()->Pop();
}

bool GrpcExchange::Ready() { return running_ == nullptr || running_->queue()->Ready(); }

void GrpcExchange::Upload(RoundUpdate update) {
  if (running_ != nullptr) running_->uploader()->Add(std::move(update));
}

void GrpcExchange::Report(RoundId next_round, uint64_t log_hash,
                          const v1::WorkerTelemetry& telemetry) {
  if (running_ != nullptr) running_->heartbeat()->Report(next_round, log_hash, &telemetry);
}

void GrpcExchange::Leave(const std::string& reason) {
  if (running_ == nullptr) return;
  const bool replaced = running_->session()->end_status().code() == absl::StatusCode::kAborted;
  running_->Shutdown();
  v1::LeaveRequest request;
  *request.mutable_worker() = running_->session()->worker();
  const absl::string_view shortened = absl::string_view(reason).substr(0, kMaxReasonBytes);
  request.set_reason(std::string(shortened.substr(0, ValidUtf8Prefix(shortened))));
  running_.reset();
  if (replaced) return;
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + options_.leave_timeout));
  v1::LeaveResponse response;
  const absl::Status status = FromGrpcStatus(stubs_->control->Leave(&context, request, &response));
  log_->Info("left", {{"worker", request.worker().name()}, {"reason", reason}, {"status", status}});
}

void GrpcExchange::Stop() {
  absl::MutexLock lock(&mu_);
  stopped_ = true;
  if (current_ != nullptr) current_->End(StoppedError());
  if (queue_ != nullptr) queue_->Close(StoppedError(), /*drop=*/true);
}

bool GrpcExchange::stopped() const {
  absl::MutexLock lock(&mu_);
  return stopped_;
}

}  // namespace distro::worker
