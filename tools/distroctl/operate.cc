#include "tools/distroctl/operate.h"

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "tools/distroctl/admin_call.h"
#include "tools/distroctl/connection.h"

namespace distro::tools {
namespace {

using Admin = v1::AdminService::StubInterface;

Flag ReasonFlag() {
  return {.name = "reason",
          .help = "Why, at most 200 bytes: in logs and lists, and for an evicted worker."};
}

}  // namespace

absl::StatusOr<Report> PauseRun(Admin* admin, absl::string_view reason) {
  v1::PauseRequest request;
  request.set_reason(std::string(reason));
  DISTRO_RETURN_IF_ERROR(CallAdmin(admin, &Admin::Pause, request).status());
  return Report{.text = "paused: the open round ends, no other opens until `distroctl run resume`",
                .json = {{"paused", true}}};
}

absl::StatusOr<Report> ResumeRun(Admin* admin) {
  DISTRO_RETURN_IF_ERROR(CallAdmin(admin, &Admin::Resume, v1::ResumeRequest()).status());
  return Report{.text = "resumed: rounds open", .json = {{"paused", false}}};
}

absl::StatusOr<Report> EvictWorker(Admin* admin, const std::string& name,
                                   absl::string_view reason) {
  DISTRO_RETURN_IF_ERROR(ValidateName(name, "NAME"));
  v1::EvictRequest request;
  request.set_name(name);
  request.set_reason(std::string(reason));
  DISTRO_RETURN_IF_ERROR(CallAdmin(admin, &Admin::Evict, request).status());
  return Report{
      .text = absl::StrCat("evicted ", name,
                           ": nothing is accepted from it until `distroctl admit ", name, "`"),
      .json = {{"name", name}, {"evicted", true}}};
}

absl::StatusOr<Report> AdmitWorker(Admin* admin, const std::string& name) {
  DISTRO_RETURN_IF_ERROR(ValidateName(name, "NAME"));
  v1::AdmitRequest request;
  request.set_name(name);
  DISTRO_RETURN_IF_ERROR(CallAdmin(admin, &Admin::Admit, request).status());
  return Report{.text = absl::StrCat("admitted ", name, ": start its worker again"),
                .json = {{"name", name}, {"evicted", false}}};
}

Command RunPauseCommand() {
  return {
      .name = "run pause",
      .arguments = "HOST:PORT",
      .summary = "The open round ends, no other opens until `run resume`; workers stay in session.",
      .flags = WithClientFlags({ReasonFlag()}),
      .help =
          R"(Outlives a restart of the aggregator. A repeat is harmless; the last reason stays. Role admin.

Example:
  distroctl run pause aggregator.example:7700 --reason "new switch" --ca ca.pem --token_file admin.token)",
      .run = [](const Arguments& arguments, const Console&) -> absl::StatusOr<Report> {
        DISTRO_ASSIGN_OR_RETURN(const auto admin, OpenAdmin(arguments));
        return PauseRun(admin.get(), arguments.Text("reason"));
      }};
}

Command RunResumeCommand() {
  return {.name = "run resume",
          .arguments = "HOST:PORT",
          .summary = "Ends a pause: rounds open again.",
          .flags = WithClientFlags({}),
          .help = R"(A repeat is harmless. Role admin.

Example:
  distroctl run resume aggregator.example:7700 --ca ca.pem --token_file admin.token)",
          .run = [](const Arguments& arguments, const Console&) -> absl::StatusOr<Report> {
            DISTRO_ASSIGN_OR_RETURN(const auto admin, OpenAdmin(arguments));
            return ResumeRun(admin.get());
          }};
}

Command EvictCommand() {
  return {.name = "evict",
          .arguments = "NAME HOST:PORT",
          .summary =
              "Nothing is accepted from the worker of this name until `admit`; it is told why, and "
              "ends.",
          .flags = WithClientFlags({ReasonFlag()}),
          .help = R"(Also of a name that was never seen. Outlives restarts. Role admin.

Example:
  distroctl evict w7 aggregator.example:7700 --reason "bad memory" --ca ca.pem --token_file admin.token)",
          .run = [](const Arguments& arguments, const Console&) -> absl::StatusOr<Report> {
            DISTRO_ASSIGN_OR_RETURN(const auto admin, OpenAdmin(arguments));
            return EvictWorker(admin.get(), arguments.positional()[0], arguments.Text("reason"));
          }};
}

Command AdmitCommand() {
  return {
      .name = "admit",
      .arguments = "NAME HOST:PORT",
      .summary =
          "Ends a quarantine, by `evict` or by a rule: the worker of this name may join again.",
      .flags = WithClientFlags({}),
      .help =
          R"(It joins as a newcomer: on probation, its counts begin anew. A name that is not in quarantine ends with 2. Role admin.

Example:
  distroctl admit w7 aggregator.example:7700 --ca ca.pem --token_file admin.token)",
      .run = [](const Arguments& arguments, const Console&) -> absl::StatusOr<Report> {
        DISTRO_ASSIGN_OR_RETURN(const auto admin, OpenAdmin(arguments));
        return AdmitWorker(admin.get(), arguments.positional()[0]);
      }};
}

}  // namespace distro::tools
