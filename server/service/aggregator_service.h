// Implements AggregatorService, for workers, by thin handlers that call the run (docs/protocol.md).
// Thread-safe.
#pragma once

#include "common/base/clock.h"
#include "common/base/log.h"
#include "distro/v1/aggregator.grpc.pb.h"
#include "server/call/observers.h"
#include "server/limits/stream_limiter.h"
#include "server/round/run_host.h"
#include "server/service/call_checks.h"
#include "server/service/raw_message.h"
#include "server/session/worker_reports.h"

namespace distro::server {

// All methods receive raw bytes: CallChecks parses those of unary calls, reactors parse those of
// streams.
using AggregatorMethods = v1::AggregatorService::WithRawCallbackMethod_UploadUpdate<
    v1::AggregatorService::WithRawCallbackMethod_UploadSnapshot<
        v1::AggregatorService::WithRawCallbackMethod_SubscribeRounds<
            v1::AggregatorService::WithRawCallbackMethod_Join<
                v1::AggregatorService::WithRawCallbackMethod_Heartbeat<
                    v1::AggregatorService::WithRawCallbackMethod_DownloadSnapshot<
                        v1::AggregatorService::WithRawCallbackMethod_ReportState<
                            v1::AggregatorService::WithRawCallbackMethod_Leave<
                                v1::AggregatorService::Service>>>>>>>>;

class AggregatorService final : public AggregatorMethods {
 public:
  // All are borrowed.
  AggregatorService(RunHost* host, const CallChecks* checks, StreamLimiter* limiter,
                    TransferObserver* observer, WorkerReports* reports, const Clock* clock,
                    Log* log)
      : host_(host),
        checks_(checks),
        limiter_(limiter),
        observer_(observer),
        reports_(reports),
        clock_(clock),
        log_(log) {}

  grpc::ServerUnaryReactor* Join(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Heartbeat(grpc::CallbackServerContext* context,
                                      const grpc::ByteBuffer* request,
                                      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Leave(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) override;
  RawBidiReactor* UploadUpdate(grpc::CallbackServerContext* context) override;
  RawWriteReactor* SubscribeRounds(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request) override;
  RawWriteReactor* DownloadSnapshot(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request) override;
  RawBidiReactor* UploadSnapshot(grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* ReportState(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;

 private:
  absl::Status HandleJoin(const v1::JoinRequest& request, v1::JoinResponse* response);
  absl::Status HandleHeartbeat(const v1::HeartbeatRequest& request,
                               v1::HeartbeatResponse* response);
  absl::Status HandleLeave(const v1::LeaveRequest& request, v1::LeaveResponse* response);
  absl::Status HandleReportState(const v1::ReportStateRequest& request,
                                 v1::ReportStateResponse* response);

  RunHost* const host_;
  const CallChecks* const checks_;
  StreamLimiter* const limiter_;
  TransferObserver* const observer_;
  WorkerReports* const reports_;
  const Clock* const clock_;
  Log* const log_;
};

}  // namespace distro::server
