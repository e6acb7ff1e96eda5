#include "server/service/call_desk.h"

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/rpc/status.h"
#include "server/service/disk_error.h"

namespace distro::server {
namespace {

uint64_t CostOf(Rpc rpc) {
  switch (rpc) {
    case Rpc::kJoin:
    case Rpc::kLeave:
    case Rpc::kSubscribeRounds:
    case Rpc::kDownloadSnapshot:
    case Rpc::kUploadSnapshot:
    case Rpc::kCreateRun:
      return kHeavyCall;
    default:
      return kLightCall;
  }
}

}  // namespace

absl::StatusOr<Caller> CallDesk::Admit(const grpc::ServerContextBase& context, Rpc rpc) const {
  DISTRO_ASSIGN_OR_RETURN(Caller caller, authorizer_->Check(context, rpc));
  if (!caller.name().empty()) DISTRO_RETURN_IF_ERROR(Count(caller.name(), rpc));
  return caller;
}

absl::Status CallDesk::Count(const std::string& name, Rpc rpc) const {
  // What is no name is not kept: it may be as long as a message.
  const bool is_name = ValidateName(name, "name").ok();
  absl::Status status = rates_->Take(is_name ? name : "", CostOf(rpc));
  if (!status.ok()) observer_->OnCallRefused("limit");
  return status;
}

grpc::ServerUnaryReactor* CallDesk::Finish(const UnaryCall& call,
                                           const absl::Status& status) const {
  grpc::ServerUnaryReactor* reactor = call.context->DefaultReactor();
  reactor->Finish(
      ToGrpcStatus(ForCaller(status, absl::StrCat("answer ", RpcName(call.rpc)), log_)));
  return reactor;
}

}  // namespace distro::server
