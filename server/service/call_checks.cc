#include "server/service/call_checks.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/reason.h"
#include "common/net/rpc/status.h"
#include "server/log/disk.h"

namespace distro::server {
namespace {

// Whether a failing disk, not the caller, caused the status. Not every function sets the reason
// `disk`. Other statuses of a failed system call name a file; our own statuses with these codes
// contain no slash.
bool IsOfTheDisk(const absl::Status& status) {
  if (IsDiskError(status)) return true;
  if (const std::string reason = ReasonOf(status); !reason.empty()) return reason == "disk";
  switch (status.code()) {
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
    case absl::StatusCode::kDataLoss:
      return absl::StrContains(status.message(), '/');
    default:
      return false;
  }
}

}  // namespace

absl::Status NoRun() { return absl::UnavailableError("there is no run yet: it must be created"); }

absl::Status WithoutPath(const absl::Status& status, absl::string_view operation, Log* log) {
  log->Error("disk failed for a caller", {{"operation", operation}, {"reason", status}});
  return ErrorWithReason(
      absl::IsDataLoss(status) ? absl::StatusCode::kDataLoss : absl::StatusCode::kUnavailable,
      "disk", absl::StrCat("the aggregator cannot ", operation, ": its log says why"));
}

absl::Status ForCaller(const absl::Status& status, absl::string_view operation, Log* log) {
  return !status.ok() && IsOfTheDisk(status) ? WithoutPath(status, operation, log) : status;
}

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

absl::StatusOr<Caller> CallChecks::Admit(const grpc::ServerContextBase& context, Rpc rpc) const {
  DISTRO_ASSIGN_OR_RETURN(Caller caller, authorizer_->Check(context, rpc));
  if (!caller.name().empty()) DISTRO_RETURN_IF_ERROR(Count(caller.name(), rpc));
  return caller;
}

absl::Status CallChecks::Count(const std::string& name, Rpc rpc) const {
  // An invalid name is not kept: it may be as long as a message.
  const bool is_name = ValidateName(name, "name").ok();
  absl::Status status = rates_->Take(is_name ? name : "", CostOf(rpc));
  if (!status.ok()) observer_->OnCallRefused("limit");
  return status;
}

grpc::ServerUnaryReactor* CallChecks::Finish(const UnaryCall& call,
                                             const absl::Status& status) const {
  grpc::ServerUnaryReactor* reactor = call.context->DefaultReactor();
  reactor->Finish(
      ToGrpcStatus(ForCaller(status, absl::StrCat("answer ", RpcName(call.rpc)), log_)));
  return reactor;
}

}  // namespace distro::server
