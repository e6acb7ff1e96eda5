// What workers call: thin handlers in front of the run (docs/protocol.md). Thread-safe.
#pragma once

#include "common/base/clock.h"
#include "common/base/log.h"
#include "distro/v1/aggregator.grpc.pb.h"
#include "server/auth/authorizer.h"
#include "server/limits/stream_gate.h"
#include "server/round/run_host.h"
#include "server/service/bidi_reactor.h"
#include "server/service/transfer_observer.h"
#include "server/session/worker_reports.h"

namespace distro::server {

// The reactors of the streams parse and serialize by themselves.
using AggregatorMethods = v1::AggregatorService::WithRawCallbackMethod_UploadUpdate<
    v1::AggregatorService::WithCallbackMethod_UploadSnapshot<
        v1::AggregatorService::WithRawCallbackMethod_SubscribeRounds<
            v1::AggregatorService::WithCallbackMethod_Join<
                v1::AggregatorService::WithCallbackMethod_Heartbeat<
                    v1::AggregatorService::WithCallbackMethod_DownloadSnapshot<
                        v1::AggregatorService::WithCallbackMethod_ReportState<
                            v1::AggregatorService::WithCallbackMethod_Leave<
                                v1::AggregatorService::Service>>>>>>>>;

class AggregatorService final : public AggregatorMethods {
 public:
  // All are borrowed.
  AggregatorService(RunHost* host, const Authorizer* authorizer, StreamGate* gate,
                    TransferObserver* observer, WorkerReports* reports, const Clock* clock,
                    Log* log)
      : host_(host),
        authorizer_(authorizer),
        gate_(gate),
        observer_(observer),
        reports_(reports),
        clock_(clock),
        log_(log) {}

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context,
                                 const v1::JoinRequest* request,
                                 v1::JoinResponse* response) override;
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const v1::HeartbeatRequest* request,
                                      v1::HeartbeatResponse* response) override;
  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context,
                                  const v1::LeaveRequest* request,
                                  v1::LeaveResponse* response) override;
  RawBidiReactor* UploadUpdate(grpc::CallbackServerContext* context) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* SubscribeRounds(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) override;
  grpc::ServerWriteReactor<v1::DownloadSnapshotResponse>* DownloadSnapshot(
      grpc::CallbackServerContext* context, const v1::DownloadSnapshotRequest* request) override;
  grpc::ServerBidiReactor<v1::UploadSnapshotRequest, v1::UploadSnapshotResponse>* UploadSnapshot(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ReportState(grpc::CallbackServerContext* context,
                                        const v1::ReportStateRequest* request,
                                        v1::ReportStateResponse* response) override;

 private:
  RunHost* const host_;
  const Authorizer* const authorizer_;
  StreamGate* const gate_;
  TransferObserver* const observer_;
  WorkerReports* const reports_;
  const Clock* const clock_;
  Log* const log_;
};

}  // namespace distro::server
