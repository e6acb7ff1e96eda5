// What operators call: thin handlers (docs/protocol.md). Thread-safe.
#pragma once

#include "distro/v1/admin.grpc.pb.h"
#include "server/round/run_host.h"
#include "server/service/transfer_observer.h"

namespace distro::server {

class AdminService final : public v1::AdminService::CallbackService {
 public:
  // Both are borrowed.
  AdminService(RunHost* host, TransferObserver* observer) : host_(host), observer_(observer) {}

  grpc::ServerBidiReactor<v1::CreateRunRequest, v1::CreateRunResponse>* CreateRun(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* GetRun(grpc::CallbackServerContext* context,
                                   const v1::GetRunRequest* request,
                                   v1::GetRunResponse* response) override;
  grpc::ServerUnaryReactor* ListWorkers(grpc::CallbackServerContext* context,
                                        const v1::ListWorkersRequest* request,
                                        v1::ListWorkersResponse* response) override;

 private:
  RunHost* const host_;
  TransferObserver* const observer_;
};

}  // namespace distro::server
