#include "server/service/admin_service.h"

#include <utility>

#include "server/service/create_run_reactor.h"
#include "server/service/raw_message.h"
#include "server/service/worker_infos.h"

namespace distro::server {
RawBidiReactor* AdminService::CreateRun(grpc::CallbackServerContext* context) {
  const absl::StatusOr<Caller> caller = checks_->Admit(*context, Rpc::kCreateRun);
  if (!caller.ok()) return RefuseStream<RawBidiReactor>(caller.status());
  return new CreateRunReactor(context, caller->name(), host_, limiter_, observer_,
                              checks_->connections(), log_);
}

grpc::ServerUnaryReactor* AdminService::GetRun(grpc::CallbackServerContext* context,
                                               const grpc::ByteBuffer* request,
                                               grpc::ByteBuffer* response) {
  return checks_->Answer({context, Rpc::kGetRun, request, response}, this,
                         &AdminService::HandleGetRun);
}

absl::Status AdminService::HandleGetRun(const v1::GetRunRequest& /*request*/,
                                        v1::GetRunResponse* response) {
  response->set_epoch(host_->epoch().value());
  const RoundManager* manager = host_->manager();
  const SnapshotTransfers* snapshots = host_->snapshots();
  if (manager == nullptr || snapshots == nullptr) {
    response->set_state(v1::RUN_STATE_EMPTY);
    response->set_reason("there is no run yet: create one");
    return absl::OkStatus();
  }
  const RunStatus status = manager->status();
  response->set_run_id(manager->run().run_id);
  *response->mutable_config() = manager->run().config;
  response->mutable_config()->set_rounds(status.rounds);
  response->set_created_rounds(manager->run().config.rounds());
  response->set_created_sha256(manager->run().created_sha256());
  response->set_data_fingerprint(status.data_fingerprint);
  response->set_state(status.state);
  response->set_reason(status.reason);
  response->set_round(status.round.value());
  response->set_log_hash(status.log_hash);
  response->set_model_config_json(manager->run().model_config_json);
  const Sha256Digest& manifest_hash = manager->layout().manifest().hash();
  response->set_manifest_hash(manifest_hash.data(), manifest_hash.size());
  for (v1::SnapshotInfo& info : snapshots->List()) *response->add_snapshots() = std::move(info);
  response->set_first_round(snapshots->first_round().value());
  *response->mutable_companions() = manager->run().companions;
  const std::vector<std::string>& mirrors = manager->mirrors();
  response->mutable_mirrors()->Add(mirrors.begin(), mirrors.end());
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* AdminService::ListWorkers(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request,
                                                    grpc::ByteBuffer* response) {
  return checks_->Answer({context, Rpc::kListWorkers, request, response}, this,
                         &AdminService::HandleListWorkers);
}

absl::Status AdminService::HandleListWorkers(const v1::ListWorkersRequest& /*request*/,
                                             v1::ListWorkersResponse* response) {
  if (const RoundManager* manager = host_->manager()) {
    const RunStatus status = manager->status();
    *response = WorkerInfos(status, reports_->List(status.now));
  }
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* AdminService::Pause(grpc::CallbackServerContext* context,
                                              const grpc::ByteBuffer* request,
                                              grpc::ByteBuffer* response) {
  return checks_->Answer({context, Rpc::kPause, request, response}, this,
                         &AdminService::HandlePause);
}

absl::Status AdminService::HandlePause(const v1::PauseRequest& request,
                                       v1::PauseResponse* /*response*/) {
  RoundManager* manager = host_->manager();
  return manager == nullptr ? NoRun() : manager->decisions().Pause(request.reason());
}

grpc::ServerUnaryReactor* AdminService::Resume(grpc::CallbackServerContext* context,
                                               const grpc::ByteBuffer* request,
                                               grpc::ByteBuffer* response) {
  return checks_->Answer({context, Rpc::kResume, request, response}, this,
                         &AdminService::HandleResume);
}

absl::Status AdminService::HandleResume(const v1::ResumeRequest& /*request*/,
                                        v1::ResumeResponse* /*response*/) {
  RoundManager* manager = host_->manager();
  return manager == nullptr ? NoRun() : manager->decisions().Resume();
}

grpc::ServerUnaryReactor* AdminService::Extend(grpc::CallbackServerContext* context,
                                               const grpc::ByteBuffer* request,
                                               grpc::ByteBuffer* response) {
  return checks_->Answer({context, Rpc::kExtend, request, response}, this,
                         &AdminService::HandleExtend);
}

absl::Status AdminService::HandleExtend(const v1::ExtendRequest& request,
                                        v1::ExtendResponse* response) {
  RoundManager* manager = host_->manager();
  if (manager == nullptr) return NoRun();
  DISTRO_ASSIGN_OR_RETURN(*response->mutable_extension(),
                          manager->decisions().Extend(request.rounds()));
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* AdminService::Evict(grpc::CallbackServerContext* context,
                                              const grpc::ByteBuffer* request,
                                              grpc::ByteBuffer* response) {
  return checks_->Answer({context, Rpc::kEvict, request, response}, this,
                         &AdminService::HandleEvict);
}

absl::Status AdminService::HandleEvict(const v1::EvictRequest& request,
                                       v1::EvictResponse* /*response*/) {
  RoundManager* manager = host_->manager();
  return manager == nullptr ? NoRun()
                            : manager->decisions().Evict(request.name(), request.reason());
}

grpc::ServerUnaryReactor* AdminService::Admit(grpc::CallbackServerContext* context,
                                              const grpc::ByteBuffer* request,
                                              grpc::ByteBuffer* response) {
  return checks_->Answer({context, Rpc::kAdmit, request, response}, this,
                         &AdminService::HandleAdmit);
}

absl::Status AdminService::HandleAdmit(const v1::AdmitRequest& request,
                                       v1::AdmitResponse* /*response*/) {
  RoundManager* manager = host_->manager();
  return manager == nullptr ? NoRun() : manager->decisions().Admit(request.name());
}

}  // namespace distro::server
