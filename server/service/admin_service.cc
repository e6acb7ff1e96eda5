#include "server/service/admin_service.h"

#include "common/rpc/status.h"
#include "server/service/create_run_reactor.h"
#include "server/service/refuse_stream.h"
#include "server/service/worker_infos.h"

namespace distro::server {
namespace {

grpc::ServerUnaryReactor* Done(grpc::CallbackServerContext* context,
                               const absl::Status& status = absl::OkStatus()) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

absl::Status NoRun() { return absl::UnavailableError("there is no run yet: it must be created"); }

}  // namespace

RawBidiReactor* AdminService::CreateRun(grpc::CallbackServerContext* context) {
  const absl::StatusOr<Caller> caller = authorizer_->Check(*context, Rpc::kCreateRun);
  if (!caller.ok()) return RefuseStream<RawBidiReactor>(caller.status());
  return new CreateRunReactor(context, host_, gate_, observer_, authorizer_->connections());
}

grpc::ServerUnaryReactor* AdminService::GetRun(grpc::CallbackServerContext* context,
                                               const v1::GetRunRequest* /*request*/,
                                               v1::GetRunResponse* response) {
  if (auto caller = authorizer_->Check(*context, Rpc::kGetRun); !caller.ok())
    return Done(context, caller.status());
  response->set_epoch(host_->epoch().value());
  const RoundManager* manager = host_->manager();
  const SnapshotDesk* desk = host_->snapshots();
  if (manager == nullptr || desk == nullptr) {
    response->set_state(v1::RUN_STATE_EMPTY);
    response->set_reason("there is no run yet: create one");
    return Done(context);
  }
  const RunStatus status = manager->status();
  response->set_run_id(manager->run().run_id);
  *response->mutable_config() = manager->run().config;
  response->set_state(status.state);
  response->set_reason(status.reason);
  response->set_round(status.round.value());
  response->set_log_hash(status.log_hash);
  response->set_model_config_json(manager->run().model_config_json);
  const Sha256Digest& manifest_hash = manager->layout().manifest().hash();
  response->set_manifest_hash(manifest_hash.data(), manifest_hash.size());
  for (v1::SnapshotInfo& info : desk->List()) *response->add_snapshots() = std::move(info);
  response->set_first_round(desk->first_round().value());
  return Done(context);
}

grpc::ServerUnaryReactor* AdminService::ListWorkers(grpc::CallbackServerContext* context,
                                                    const v1::ListWorkersRequest* /*request*/,
                                                    v1::ListWorkersResponse* response) {
  if (auto caller = authorizer_->Check(*context, Rpc::kListWorkers); !caller.ok())
    return Done(context, caller.status());
  if (const RoundManager* manager = host_->manager()) {
    const RunStatus status = manager->status();
    *response = WorkerInfos(status, reports_->List(status.now));
  }
  return Done(context);
}

grpc::ServerUnaryReactor* AdminService::Pause(grpc::CallbackServerContext* context,
                                              const v1::PauseRequest* request,
                                              v1::PauseResponse* /*response*/) {
  if (auto caller = authorizer_->Check(*context, Rpc::kPause); !caller.ok())
    return Done(context, caller.status());
  RoundManager* manager = host_->manager();
  return Done(context, manager == nullptr ? NoRun() : manager->Pause(request->reason()));
}

grpc::ServerUnaryReactor* AdminService::Resume(grpc::CallbackServerContext* context,
                                               const v1::ResumeRequest* /*request*/,
                                               v1::ResumeResponse* /*response*/) {
  if (auto caller = authorizer_->Check(*context, Rpc::kResume); !caller.ok())
    return Done(context, caller.status());
  RoundManager* manager = host_->manager();
  return Done(context, manager == nullptr ? NoRun() : manager->Resume());
}

grpc::ServerUnaryReactor* AdminService::Evict(grpc::CallbackServerContext* context,
                                              const v1::EvictRequest* request,
                                              v1::EvictResponse* /*response*/) {
  if (auto caller = authorizer_->Check(*context, Rpc::kEvict); !caller.ok())
    return Done(context, caller.status());
  RoundManager* manager = host_->manager();
  return Done(context,
              manager == nullptr ? NoRun() : manager->Evict(request->name(), request->reason()));
}

grpc::ServerUnaryReactor* AdminService::Admit(grpc::CallbackServerContext* context,
                                              const v1::AdmitRequest* request,
                                              v1::AdmitResponse* /*response*/) {
  if (auto caller = authorizer_->Check(*context, Rpc::kAdmit); !caller.ok())
    return Done(context, caller.status());
  RoundManager* manager = host_->manager();
  return Done(context, manager == nullptr ? NoRun() : manager->Admit(request->name()));
}

}  // namespace distro::server
