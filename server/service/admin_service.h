// Implements AdminService, for operators, by thin handlers (docs/protocol.md). Thread-safe.
#pragma once

#include "common/base/log.h"
#include "distro/v1/admin.grpc.pb.h"
#include "server/call/observers.h"
#include "server/limits/stream_limiter.h"
#include "server/round/run_host.h"
#include "server/service/call_checks.h"
#include "server/service/raw_message.h"
#include "server/session/worker_reports.h"

namespace distro::server {

// All methods receive raw bytes: CallChecks parses those of unary calls, CreateRun parses its own.
using AdminMethods = v1::AdminService::WithRawCallbackMethod_CreateRun<
    v1::AdminService::WithRawCallbackMethod_GetRun<
        v1::AdminService::WithRawCallbackMethod_ListWorkers<
            v1::AdminService::WithRawCallbackMethod_Pause<
                v1::AdminService::WithRawCallbackMethod_Resume<
                    v1::AdminService::WithRawCallbackMethod_Extend<
                        v1::AdminService::WithRawCallbackMethod_Evict<
                            v1::AdminService::WithRawCallbackMethod_Admit<
                                v1::AdminService::Service>>>>>>>>;

class AdminService final : public AdminMethods {
 public:
  // All are borrowed.
  AdminService(RunHost* host, const CallChecks* checks, StreamLimiter* limiter,
               TransferObserver* observer, const WorkerReports* reports, Log* log)
      : host_(host),
        checks_(checks),
        limiter_(limiter),
        observer_(observer),
        reports_(reports),
        log_(log) {}

  RawBidiReactor* CreateRun(grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* GetRun(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const grpc::ByteBuffer* request,
                                        grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Pause(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Resume(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Extend(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Evict(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Admit(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) override;

 private:
  absl::Status HandleGetRun(const v1::GetRunRequest& request, v1::GetRunResponse* response);
  absl::Status HandleListWorkers(const v1::ListWorkersRequest& request,
                                 v1::ListWorkersResponse* response);
  absl::Status HandlePause(const v1::PauseRequest& request, v1::PauseResponse* response);
  absl::Status HandleResume(const v1::ResumeRequest& request, v1::ResumeResponse* response);
  absl::Status HandleExtend(const v1::ExtendRequest& request, v1::ExtendResponse* response);
  absl::Status HandleEvict(const v1::EvictRequest& request, v1::EvictResponse* response);
  absl::Status HandleAdmit(const v1::AdmitRequest& request, v1::AdmitResponse* response);

  RunHost* const host_;
  const CallChecks* const checks_;
  StreamLimiter* const limiter_;
  TransferObserver* const observer_;
  const WorkerReports* const reports_;
  Log* const log_;
};

}  // namespace distro::server
