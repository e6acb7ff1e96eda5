#include "server/service/aggregator_service.h"

#include <utility>

#include "common/rpc/status.h"
#include "server/service/download_reactor.h"
#include "server/service/refuse_stream.h"
#include "server/service/subscribe_reactor.h"
#include "server/service/upload_reactor.h"
#include "server/service/upload_snapshot_reactor.h"

namespace distro::server {
namespace {

grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context, const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

// The worker is in session with this process.
bool LetIn(v1::Directive directive) {
  return directive == v1::DIRECTIVE_CONTINUE || directive == v1::DIRECTIVE_RESYNC;
}

absl::Status NoRun() { return absl::UnavailableError("there is no run yet: it must be created"); }

}  // namespace

grpc::ServerUnaryReactor* AggregatorService::Join(grpc::CallbackServerContext* context,
                                                  const v1::JoinRequest* request,
                                                  v1::JoinResponse* response) {
  if (absl::Status may = authorizer_->CheckWorker(*context, Rpc::kJoin, request->worker().name());
      !may.ok()) {
    return Answer(context, may);
  }
  RoundManager* manager = host_->manager();
  if (manager == nullptr) return Answer(context, NoRun());
  absl::StatusOr<v1::JoinResponse> joined = manager->Join(*request);
  if (!joined.ok()) return Answer(context, joined.status());
  *response = *std::move(joined);
  observer_->OnReceived(TransferKind::kControl, request->ByteSizeLong());
  observer_->OnSent(TransferKind::kControl, response->ByteSizeLong());
  return Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* AggregatorService::Heartbeat(grpc::CallbackServerContext* context,
                                                       const v1::HeartbeatRequest* request,
                                                       v1::HeartbeatResponse* response) {
  if (absl::Status may =
          authorizer_->CheckWorker(*context, Rpc::kHeartbeat, request->worker().name());
      !may.ok()) {
    return Answer(context, may);
  }
  RoundManager* manager = host_->manager();
  if (manager == nullptr) return Answer(context, NoRun());
  absl::StatusOr<v1::HeartbeatResponse> answer = manager->Heartbeat(*request);
  if (!answer.ok()) return Answer(context, answer.status());
  *response = *std::move(answer);
  if (LetIn(response->directive())) {
    observer_->OnDroppedValues(reports_->Take(*request, clock_->WallNow(), clock_->MonotonicNow()));
  }
  observer_->OnReceived(TransferKind::kControl, request->ByteSizeLong());
  observer_->OnSent(TransferKind::kControl, response->ByteSizeLong());
  return Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* AggregatorService::Leave(grpc::CallbackServerContext* context,
                                                   const v1::LeaveRequest* request,
                                                   v1::LeaveResponse* /*response*/) {
  if (absl::Status may = authorizer_->CheckWorker(*context, Rpc::kLeave, request->worker().name());
      !may.ok()) {
    return Answer(context, may);
  }
  if (RoundManager* manager = host_->manager()) manager->Leave(*request);
  reports_->Leave(request->worker());
  return Answer(context, absl::OkStatus());
}

RawBidiReactor* AggregatorService::UploadUpdate(grpc::CallbackServerContext* context) {
  absl::StatusOr<Caller> caller = authorizer_->Check(*context, Rpc::kUploadUpdate);
  if (!caller.ok()) return RefuseStream<RawBidiReactor>(caller.status());
  return new UploadReactor(context, *std::move(caller), host_->manager(), gate_, observer_,
                           authorizer_->connections());
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* AggregatorService::SubscribeRounds(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  const absl::StatusOr<Caller> caller = authorizer_->Check(*context, Rpc::kSubscribeRounds);
  if (!caller.ok())
    return RefuseStream<grpc::ServerWriteReactor<grpc::ByteBuffer>>(caller.status());
  return SubscribeReactor::Start(*caller, host_->manager(), gate_, observer_, log_, *request);
}

grpc::ServerWriteReactor<v1::DownloadSnapshotResponse>* AggregatorService::DownloadSnapshot(
    grpc::CallbackServerContext* context, const v1::DownloadSnapshotRequest* request) {
  const absl::StatusOr<Caller> caller = authorizer_->Check(*context, Rpc::kDownloadSnapshot);
  if (!caller.ok())
    return RefuseStream<grpc::ServerWriteReactor<v1::DownloadSnapshotResponse>>(caller.status());
  return new DownloadReactor(context, host_->snapshots(), gate_, observer_, log_, *request);
}

grpc::ServerBidiReactor<v1::UploadSnapshotRequest, v1::UploadSnapshotResponse>*
AggregatorService::UploadSnapshot(grpc::CallbackServerContext* context) {
  const absl::StatusOr<Caller> caller = authorizer_->Check(*context, Rpc::kUploadSnapshot);
  if (!caller.ok()) {
    return RefuseStream<
        grpc::ServerBidiReactor<v1::UploadSnapshotRequest, v1::UploadSnapshotResponse>>(
        caller.status());
  }
  return new UploadSnapshotReactor(context, host_->snapshots(), gate_, observer_, log_);
}

grpc::ServerUnaryReactor* AggregatorService::ReportState(grpc::CallbackServerContext* context,
                                                         const v1::ReportStateRequest* request,
                                                         v1::ReportStateResponse* /*response*/) {
  if (auto caller = authorizer_->Check(*context, Rpc::kReportState); !caller.ok())
    return Answer(context, caller.status());
  RoundManager* manager = host_->manager();
  if (manager == nullptr) return Answer(context, NoRun());
  observer_->OnReceived(TransferKind::kControl, request->ByteSizeLong());
  return Answer(context, manager->ReportState(*request));
}

}  // namespace distro::server
