#include "common/client/member/grpc_exchange.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/epoch.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/client/await_call.h"
#include "common/client/follow/snapshot_fetch.h"
#include "common/client/status_action.h"
#include "common/net/wire/proto_time.h"

namespace distro {
namespace {

constexpr size_t kMaxReasonBytes = 200;  // LeaveRequest.reason

absl::Status StoppedError() { return absl::CancelledError("stopped"); }

// The interval from Join, limited to a sensible range; 5 s if it has none.
absl::Duration HeartbeatInterval(const v1::JoinResponse& response) {
  if (!response.has_heartbeat_interval()) return absl::Seconds(5);
  return std::clamp(FromProto(response.heartbeat_interval()), absl::Milliseconds(10),
                    absl::Hours(1));
}

}  // namespace

RunningSession::RunningSession(const SessionContext& context, std::shared_ptr<MemberState> state,
                               std::shared_ptr<EventQueue> queue, const Connections& connections,
                               absl::Duration heartbeat_interval)
    : context_(context),
      state_(std::move(state)),
      queue_(std::move(queue)),
      connections_(connections),
      heartbeat_(context, connections.control.get(), heartbeat_interval),
      uploader_(context, connections.upload.get()),
      heartbeat_thread_([this] { heartbeat_.Run(); }) {}

void RunningSession::Follow(const Layout* layout, RoundId next_round, uint64_t log_hash) {
  feed_ = std::make_unique<RoundFeed>(context_.follower(), connections_.download.get(), layout,
                                      RoundFeed::Start{.run_id = state_->run_id(),
                                                       .worker = state_->worker(),
                                                       .next_round = next_round,
                                                       .log_hash = log_hash,
                                                       .rounds = state_->rounds(),
                                                       .mirrors = context_.mirrors().urls},
                                      queue_.get());
  upload_thread_ = std::thread([this] { uploader_.Run(); });
}

void RunningSession::Shutdown() {
  state_->End(absl::CancelledError("left the run"));
  queue_->Close(absl::CancelledError("left the run"), /*drop=*/true);
  for (std::thread* thread : {&heartbeat_thread_, &upload_thread_}) {
    if (thread->joinable()) thread->join();
  }
  feed_.reset();
}

absl::StatusOr<std::unique_ptr<GrpcExchange>> GrpcExchange::Create(
    const GrpcExchangeOptions& options, Log* log, const Clock* clock) {
  auto connections = std::make_unique<Connections>();
  for (auto* connection : {&connections->control, &connections->upload, &connections->download}) {
    DISTRO_ASSIGN_OR_RETURN(*connection, Connection::Open(options.channel));
  }
  return std::unique_ptr<GrpcExchange>(
      new GrpcExchange(options, std::move(connections), log, clock));
}

GrpcExchange::GrpcExchange(const GrpcExchangeOptions& options,
                           std::unique_ptr<Connections> connections, Log* log, const Clock* clock)
    : options_(options),
      connections_(std::move(connections)),
      log_(log),
      clock_(clock),
      contact_(options_.channel, options_.connect_timeout, log, clock) {}

GrpcExchange::~GrpcExchange() { Stop(); }

SessionContext GrpcExchange::ContextOf(MemberState* state) {
  return {.state = state, .options = &options_, .meter = &meter_, .log = log_, .clock = clock_};
}

absl::Status GrpcExchange::SetCurrent(std::shared_ptr<MemberState> state) {
  absl::MutexLock lock(&mu_);
  if (stopped_) return StoppedError();
  current_ = std::move(state);
  return absl::OkStatus();
}

absl::StatusOr<v1::JoinResponse> GrpcExchange::Join(const v1::JoinRequest& asked) {
  if (running_ != nullptr && !running_->state()->ended())
    return absl::FailedPreconditionError("Join: the worker has a session");
  EndSession();
  v1::JoinRequest request = asked;
  const absl::Time now = clock_->WallNow();
  EpochId seen(request.epoch());
  if (request.run_id() == run_id_) seen = NewestEpoch(seen, epoch_, now);
  request.set_epoch(KeptEpoch(seen, now).value());
  // Until Join is answered, a state without a run lets Stop cancel it.
  const auto joining = std::make_shared<MemberState>(request, v1::JoinResponse());
  DISTRO_RETURN_IF_ERROR(SetCurrent(joining));
  DISTRO_ASSIGN_OR_RETURN(
      v1::JoinResponse response,
      JoinUntilAnswered(ContextOf(joining.get()), connections_->control.get(), request, &contact_));
  const auto state = std::make_shared<MemberState>(request, response);
  const auto queue = std::make_shared<EventQueue>(options_.queued_events, options_.queued_bytes);
  {
    absl::MutexLock lock(&mu_);
    if (stopped_) return StoppedError();
    current_ = state;
    queue_ = queue;
  }
  running_ = std::make_unique<RunningSession>(ContextOf(state.get()), state, queue, *connections_,
                                              HeartbeatInterval(response));
  return response;
}

void GrpcExchange::EndSession() {
  if (running_ == nullptr) return;
  running_->Shutdown();
  run_id_ = running_->state()->run_id();
  epoch_ = running_->state()->view().epoch;
  running_.reset();
}

absl::Status GrpcExchange::DownloadSnapshot(const v1::SnapshotInfo& snapshot,
                                            const std::string& path) {
  if (running_ == nullptr)
    return absl::FailedPreconditionError("DownloadSnapshot: Join comes first");
  const SessionContext& context = running_->context();
  Mirrors mirrors(context.follower(), context.mirrors());
  const absl::Status fetched =
      FetchSnapshot(context.follower(), connections_->download.get(), snapshot, path, &mirrors);
  // The snapshot that Join named no longer exists: a new session must name another.
  if (!fetched.ok() && ActionFor(fetched) == StatusAction::kResync) running_->state()->End(fetched);
  DISTRO_RETURN_IF_ERROR(fetched);
  // Asks the aggregator before training starts whether this link can ever catch up with the run.
  MemberState* const state = running_->state();
  const bool under_way = state->view().head > RoundId(snapshot.round());
  if (!under_way || meter_.download_bytes_per_second() == 0) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(
      const v1::JoinResponse again,
      JoinUntilAnswered(context, connections_->control.get(), state->RejoinRequest(), &contact_));
  DISTRO_RETURN_IF_ERROR(state->CheckSameRun(again));
  log_->Info("snapshot fetched", {{"round", snapshot.round()},
                                  {"bytes", snapshot.size_bytes()},
                                  {"download_bytes_per_second", meter_.download_bytes_per_second()},
                                  {"log_bytes_per_second", again.log_bytes_per_second()},
                                  {"head_round", again.head_round()}});
  return absl::OkStatus();
}

absl::Status GrpcExchange::DownloadCompanion(const v1::CompanionFile& file,
                                             const std::string& path) {
  if (running_ == nullptr)
    return absl::FailedPreconditionError("DownloadCompanion: Join comes first");
  return FetchCompanion(running_->context().follower(), connections_->download.get(), file, path);
}

absl::Status GrpcExchange::Follow(const Layout* layout, RoundId next_round, uint64_t log_hash) {
  if (running_ == nullptr) return absl::FailedPreconditionError("Follow: Join comes first");
  if (running_->following())
    return absl::FailedPreconditionError("Follow: the worker follows already");
  DISTRO_RETURN_IF_ERROR(running_->state()->end_status());
  running_->Follow(layout, next_round, log_hash);
  return absl::OkStatus();
}

absl::StatusOr<RoundEvent> GrpcExchange::Next() {
  if (running_ == nullptr || !running_->following()) {
    return absl::FailedPreconditionError("Next: Follow comes first");
  }
  meter_.BeginWait(clock_->MonotonicNow());
  absl::StatusOr<RoundEvent> event = running_->queue()->Pop();
  meter_.EndWait(clock_->MonotonicNow());
  return event;
}

bool GrpcExchange::Ready() { return running_ == nullptr || running_->queue()->Ready(); }

void GrpcExchange::Upload(RoundUpdate update) {
  if (running_ != nullptr) running_->uploader()->Add(std::move(update));
}

void GrpcExchange::Report(RoundId next_round, uint64_t log_hash) {
  if (running_ != nullptr) running_->heartbeat()->Report(next_round, log_hash);
}

void GrpcExchange::Leave(const std::string& reason) {
  if (running_ == nullptr) return;
  const absl::Status end = running_->state()->end_status();
  const bool refused = !end.ok() && ActionFor(end) == StatusAction::kEnd;
  v1::LeaveRequest request;
  *request.mutable_worker() = running_->state()->worker();
  const absl::string_view shortened = absl::string_view(reason).substr(0, kMaxReasonBytes);
  request.set_reason(std::string(shortened.substr(0, ValidUtf8Prefix(shortened))));
  EndSession();
  if (refused) return;  // the aggregator knows already
  grpc::ClientContext context;
  v1::LeaveResponse response;
  const std::shared_ptr<Connection::Stub> stub = connections_->control->stub();
  const absl::Status status = AwaitCall(&context, options_.leave_timeout, [&](AnswerTaker done) {
    stub->async()->Leave(&context, &request, &response, std::move(done));
  });
  log_->Info("left the run",
             {{"worker", request.worker().name()}, {"reason", reason}, {"status", status}});
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

}  // namespace distro
