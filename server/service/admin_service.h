// What operators call: thin handlers (docs/protocol.md). Thread-safe.
#pragma once

#include "distro/v1/admin.grpc.pb.h"
#include "server/auth/authorizer.h"
#include "server/limits/stream_gate.h"
#include "server/round/run_host.h"
#include "server/service/bidi_reactor.h"
#include "server/service/transfer_observer.h"
#include "server/session/worker_reports.h"

namespace distro::server {

// CreateRun parses and serializes by itself.
using AdminMethods =
    v1::AdminService::WithRawCallbackMethod_CreateRun<v1::AdminService::WithCallbackMethod_GetRun<
        v1::AdminService::WithCallbackMethod_ListWorkers<v1::AdminService::WithCallbackMethod_Pause<
            v1::AdminService::WithCallbackMethod_Resume<v1::AdminService::WithCallbackMethod_Evict<
                v1::AdminService::WithCallbackMethod_Admit<v1::AdminService::Service>>>>>>>;

class AdminService final : public AdminMethods {
 public:
  // All are borrowed.
  AdminService(RunHost* host, const Authorizer* authorizer, StreamGate* gate,
               TransferObserver* observer, const WorkerReports* reports)
      : host_(host), authorizer_(authorizer), gate_(gate), observer_(observer), reports_(reports) {}

  RawBidiReactor* CreateRun(grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* GetRun(grpc::CallbackServerContext* context,
                                   const v1::GetRunRequest* request,
                                   v1::GetRunResponse* response) override;
  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override;
  grpc::ServerUnaryReactor* Pause(grpc::CallbackServerContext* context,
                                  const v1::PauseRequest* request,
                                  v1::PauseResponse* response) override;
  grpc::ServerUnaryReactor* Resume(grpc::CallbackServerContext* context,
                                   const v1::ResumeRequest* request,
                                   v1::ResumeResponse* response) override;
  grpc::ServerUnaryReactor* Evict(grpc::CallbackServerContext* context,
                                  const v1::EvictRequest* request,
                                  v1::EvictResponse* response) override;
  grpc::ServerUnaryReactor* Admit(grpc::CallbackServerContext* context,
                                  const v1::AdmitRequest* request,
                                  v1::AdmitResponse* response) override;

 private:
  RunHost* const host_;
  const Authorizer* const authorizer_;
  StreamGate* const gate_;
  TransferObserver* const observer_;
  const WorkerReports* const reports_;
};

}  // namespace distro::server
