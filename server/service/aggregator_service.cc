#include "server/service/aggregator_service.h"

#include <utility>

#include "common/rpc/status.h"
#include "server/service/download_reactor.h"
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

absl::Status NoRun() { return absl::UnavailableError("there is no run yet: it must be created"); }

}  // namespace

grpc::ServerUnaryReactor* AggregatorService::Join(grpc::CallbackServerContext* context,
                                                  const v1::JoinRequest* request,
                                                  v1::JoinResponse* response) {
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
  RoundManager* manager = host_->manager();
  if (manager == nullptr) return Answer(context, NoRun());
  absl::StatusOr<v1::HeartbeatResponse> answer = manager->Heartbeat(*request);
  if (!answer.ok()) return Answer(context, answer.status());
  *response = *std::move(answer);
  observer_->OnReceived(TransferKind::kControl, request->ByteSizeLong());
  observer_->OnSent(TransferKind::kControl, response->ByteSizeLong());
  return Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* AggregatorService::Leave(grpc::CallbackServerContext* context,
                                                   const v1::LeaveRequest* request,
                                                   v1::LeaveResponse* /*response*/) {
  if (RoundManager* manager = host_->manager()) manager->Leave(*request);
  return Answer(context, absl::OkStatus());
}

RawBidiReactor* AggregatorService::UploadUpdate(grpc::CallbackServerContext* context) {
  return new UploadReactor(context, host_->manager(), gate_, observer_);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* AggregatorService::SubscribeRounds(
    grpc::CallbackServerContext* /*context*/, const grpc::ByteBuffer* request) {
  return SubscribeReactor::Start(host_->manager(), gate_, observer_, *request);
}

grpc::ServerWriteReactor<v1::DownloadSnapshotResponse>* AggregatorService::DownloadSnapshot(
    grpc::CallbackServerContext* context, const v1::DownloadSnapshotRequest* request) {
  return new DownloadReactor(context, host_->snapshots(), gate_, observer_, *request);
}

grpc::ServerBidiReactor<v1::UploadSnapshotRequest, v1::UploadSnapshotResponse>*
AggregatorService::UploadSnapshot(grpc::CallbackServerContext* /*context*/) {
  return new UploadSnapshotReactor(host_->snapshots(), observer_);
}

grpc::ServerUnaryReactor* AggregatorService::ReportState(grpc::CallbackServerContext* context,
                                                         const v1::ReportStateRequest* request,
                                                         v1::ReportStateResponse* /*response*/) {
  RoundManager* manager = host_->manager();
  if (manager == nullptr) return Answer(context, NoRun());
  observer_->OnReceived(TransferKind::kControl, request->ByteSizeLong());
  return Answer(context, manager->ReportState(*request));
}

}  // namespace distro::server
