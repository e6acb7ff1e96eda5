#include "tools/distroctl/operate.h"

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "common/rpc/status.h"

namespace distro::tools {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(20);

// One unary call of the admin service.
template <typename Request, typename Response>
absl::Status Call(v1::AdminService::StubInterface* admin,
                  grpc::Status (v1::AdminService::StubInterface::*call)(grpc::ClientContext*,
                                                                        const Request&, Response*),
                  const Request& request) {
  grpc::ClientContext context;
  context.set_deadline(absl::ToChronoTime(absl::Now() + kTimeout));
  Response response;
  return FromGrpcStatus((admin->*call)(&context, request, &response));
}

}  // namespace

absl::StatusOr<std::string> PauseRun(v1::AdminService::StubInterface* admin,
                                     absl::string_view reason) {
  v1::PauseRequest request;
  request.set_reason(std::string(reason));
  DISTRO_RETURN_IF_ERROR(Call(admin, &v1::AdminService::StubInterface::Pause, request));
  return "paused: the open round ends, no other opens until `distroctl resume`";
}

absl::StatusOr<std::string> ResumeRun(v1::AdminService::StubInterface* admin) {
  DISTRO_RETURN_IF_ERROR(
      Call(admin, &v1::AdminService::StubInterface::Resume, v1::ResumeRequest()));
  return "resumed: rounds open";
}

absl::StatusOr<std::string> EvictWorker(v1::AdminService::StubInterface* admin,
                                        const std::string& name, absl::string_view reason) {
  DISTRO_RETURN_IF_ERROR(ValidateName(name, "NAME"));
  v1::EvictRequest request;
  request.set_name(name);
  request.set_reason(std::string(reason));
  DISTRO_RETURN_IF_ERROR(Call(admin, &v1::AdminService::StubInterface::Evict, request));
  return absl::StrCat("evicted ", name, ": nothing is accepted from it until `distroctl admit ",
                      name, "`");
}

absl::StatusOr<std::string> AdmitWorker(v1::AdminService::StubInterface* admin,
                                        const std::string& name) {
  DISTRO_RETURN_IF_ERROR(ValidateName(name, "NAME"));
  v1::AdmitRequest request;
  request.set_name(name);
  DISTRO_RETURN_IF_ERROR(Call(admin, &v1::AdminService::StubInterface::Admit, request));
  return absl::StrCat("admitted ", name, ": start its worker again");
}

}  // namespace distro::tools
