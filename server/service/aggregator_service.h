// What workers call: thin handlers in front of the run (docs/protocol.md). Thread-safe.
#pragma once

#include "distro/v1/aggregator.grpc.pb.h"
#include "server/round/run_host.h"
#include "server/service/transfer_observer.h"

namespace distro::server {

class AggregatorService final : public v1::AggregatorService::WithRawCallbackMethod_SubscribeRounds<
                                    v1::AggregatorService::CallbackService> {
 public:
  // Both are borrowed.
  AggregatorService(RunHost* host, TransferObserver* observer) : host_(host), observer_(observer) {}

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context,
                                 const v1::JoinRequest* request,
                                 v1::JoinResponse* response) override;
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const v1::HeartbeatRequest* request,
                                      v1::HeartbeatResponse* response) override;
  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context,
                                  const v1::LeaveRequest* request,
                                  v1::LeaveResponse* response) override;
  grpc::ServerBidiReactor<v1::UploadUpdateRequest, v1::UploadUpdateResponse>* UploadUpdate(
      grpc::CallbackServerContext* context) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* SubscribeRounds(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) override;
  grpc::ServerWriteReactor<v1::DownloadSnapshotResponse>* DownloadSnapshot(
      grpc::CallbackServerContext* context, const v1::DownloadSnapshotRequest* request) override;

 private:
  RunHost* const host_;
  TransferObserver* const observer_;
};

}  // namespace distro::server
