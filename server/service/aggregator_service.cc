#include "server/service/aggregator_service.h"

#include <utility>

#include "common/base/status_macros.h"
#include "server/service/download_reactor.h"
#include "server/service/raw_message.h"
#include "server/service/subscribe_reactor.h"
#include "server/service/upload_reactor.h"
#include "server/service/upload_snapshot_reactor.h"

namespace distro::server {
namespace {

// The worker is in session with this process.
bool InSession(v1::Directive directive) {
  return directive == v1::DIRECTIVE_CONTINUE || directive == v1::DIRECTIVE_RESYNC;
}

}  // namespace

grpc::ServerUnaryReactor* AggregatorService::Join(grpc::CallbackServerContext* context,
                                                  const grpc::ByteBuffer* request,
                                                  grpc::ByteBuffer* response) {
  return checks_->Answer({context, Rpc::kJoin, request, response}, this,
                         &AggregatorService::HandleJoin);
}

absl::Status AggregatorService::HandleJoin(const v1::JoinRequest& request,
                                           v1::JoinResponse* response) {
  RoundManager* manager = host_->manager();
  if (manager == nullptr) return NoRun();
  DISTRO_ASSIGN_OR_RETURN(*response, manager->Join(request));
  observer_->OnReceived(TransferKind::kControl, request.ByteSizeLong());
  observer_->OnSent(TransferKind::kControl, response->ByteSizeLong());
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* AggregatorService::Heartbeat(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) {
  return checks_->Answer({context, Rpc::kHeartbeat, request, response}, this,
                         &AggregatorService::HandleHeartbeat);
}

absl::Status AggregatorService::HandleHeartbeat(const v1::HeartbeatRequest& request,
                                                v1::HeartbeatResponse* response) {
  RoundManager* manager = host_->manager();
  if (manager == nullptr) return NoRun();
  DISTRO_ASSIGN_OR_RETURN(*response, manager->Heartbeat(request));
  if (InSession(response->directive())) {
    observer_->OnDroppedValues(reports_->Take(request, clock_->WallNow(), clock_->MonotonicNow()));
  }
  observer_->OnReceived(TransferKind::kControl, request.ByteSizeLong());
  observer_->OnSent(TransferKind::kControl, response->ByteSizeLong());
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* AggregatorService::Leave(grpc::CallbackServerContext* context,
                                                   const grpc::ByteBuffer* request,
                                                   grpc::ByteBuffer* response) {
  return checks_->Answer({context, Rpc::kLeave, request, response}, this,
                         &AggregatorService::HandleLeave);
}

absl::Status AggregatorService::HandleLeave(const v1::LeaveRequest& request,
                                            v1::LeaveResponse* /*response*/) {
  if (RoundManager* manager = host_->manager()) manager->Leave(request);
  reports_->Leave(request.worker());
  return absl::OkStatus();
}

RawBidiReactor* AggregatorService::UploadUpdate(grpc::CallbackServerContext* context) {
  absl::StatusOr<Caller> caller = checks_->Admit(*context, Rpc::kUploadUpdate);
  if (!caller.ok()) return RefuseStream<RawBidiReactor>(caller.status());
  return new UploadReactor(context, *std::move(caller), host_->manager(), limiter_, observer_,
                           checks_->connections());
}

RawWriteReactor* AggregatorService::SubscribeRounds(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request) {
  const absl::StatusOr<Caller> caller = checks_->Admit(*context, Rpc::kSubscribeRounds);
  if (!caller.ok()) return RefuseStream<RawWriteReactor>(caller.status());
  return SubscribeReactor::Start(context, *caller, host_->manager(), limiter_, observer_, log_,
                                 *request);
}

RawWriteReactor* AggregatorService::DownloadSnapshot(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request) {
  const absl::StatusOr<Caller> caller = checks_->Admit(*context, Rpc::kDownloadSnapshot);
  if (!caller.ok()) return RefuseStream<RawWriteReactor>(caller.status());
  return new DownloadReactor(context, caller->name(), host_->snapshots(), limiter_, observer_, log_,
                             *request);
}

RawBidiReactor* AggregatorService::UploadSnapshot(grpc::CallbackServerContext* context) {
  const absl::StatusOr<Caller> caller = checks_->Admit(*context, Rpc::kUploadSnapshot);
  if (!caller.ok()) return RefuseStream<RawBidiReactor>(caller.status());
  return new UploadSnapshotReactor(context, caller->name(), host_->snapshots(), limiter_, observer_,
                                   checks_->connections(), log_);
}

grpc::ServerUnaryReactor* AggregatorService::ReportState(grpc::CallbackServerContext* context,
                                                         const grpc::ByteBuffer* request,
                                                         grpc::ByteBuffer* response) {
  return checks_->Answer({context, Rpc::kReportState, request, response}, this,
                         &AggregatorService::HandleReportState);
}

absl::Status AggregatorService::HandleReportState(const v1::ReportStateRequest& request,
                                                  v1::ReportStateResponse* /*response*/) {
  RoundManager* manager = host_->manager();
  if (manager == nullptr) return NoRun();
  observer_->OnReceived(TransferKind::kControl, request.ByteSizeLong());
  return manager->ReportState(request);
}

}  // namespace distro::server
