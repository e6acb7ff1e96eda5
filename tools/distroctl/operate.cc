#include "tools/distroctl/operate.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "common/base/ids.h"
#include "common/base/status_macros.h"
#include "tools/distroctl/admin.h"

namespace distro::tools {
namespace {

using Admin = v1::AdminService::StubInterface;

Flag ReasonFlag(std::string* reason) {
  return {.name = "reason",
          .value = reason,
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

Command RunPauseCommand(const Console* console) {
  struct Given {
    ChannelOptions channel;
    std::string reason;
  };
  const auto given = std::make_shared<Given>();
  return {
      .name = "run pause",
      .arguments = {{"HOST:PORT", &given->channel.aggregator}},
      .summary = "The open round ends, no other opens until `run resume`; workers stay in session.",
      .flags = WithClientFlags({ReasonFlag(&given->reason)}, &given->channel),
      .help =
          R"(Outlives a restart of the aggregator. A repeat is harmless; the last reason stays. Role admin.

Example:
  distroctl run pause aggregator.example:7700 --reason "new switch" --ca ca.pem --token_file admin.token)",
      .run = [given, console]() -> absl::StatusOr<int> {
        DISTRO_ASSIGN_OR_RETURN(const auto admin, OpenAdmin(given->channel));
        return console->Show(PauseRun(admin.get(), given->reason));
      }};
}

Command RunResumeCommand(const Console* console) {
  struct Given {
    ChannelOptions channel;
  };
  const auto given = std::make_shared<Given>();
  return {.name = "run resume",
          .arguments = {{"HOST:PORT", &given->channel.aggregator}},
          .summary = "Ends a pause: rounds open again.",
          .flags = WithClientFlags({}, &given->channel),
          .help = R"(A repeat is harmless. Role admin.

Example:
  distroctl run resume aggregator.example:7700 --ca ca.pem --token_file admin.token)",
          .run = [given, console]() -> absl::StatusOr<int> {
            DISTRO_ASSIGN_OR_RETURN(const auto admin, OpenAdmin(given->channel));
            return console->Show(ResumeRun(admin.get()));
          }};
}

Command EvictCommand(const Console* console) {
  struct Given {
    ChannelOptions channel;
    std::string name;
    std::string reason;
  };
  const auto given = std::make_shared<Given>();
  return {.name = "evict",
          .arguments = {{"NAME", &given->name}, {"HOST:PORT", &given->channel.aggregator}},
          .summary =
              "Nothing is accepted from the worker of this name until `admit`; it is told why, and "
              "ends.",
          .flags = WithClientFlags({ReasonFlag(&given->reason)}, &given->channel),
          .help = R"(Also of a name that was never seen. Outlives restarts. Role admin.

Example:
  distroctl evict w7 aggregator.example:7700 --reason "bad memory" --ca ca.pem --token_file admin.token)",
          .run = [given, console]() -> absl::StatusOr<int> {
            DISTRO_ASSIGN_OR_RETURN(const auto admin, OpenAdmin(given->channel));
            return console->Show(EvictWorker(admin.get(), given->name, given->reason));
          }};
}

Command AdmitCommand(const Console* console) {
  struct Given {
    ChannelOptions channel;
    std::string name;
  };
  const auto given = std::make_shared<Given>();
  return {
      .name = "admit",
      .arguments = {{"NAME", &given->name}, {"HOST:PORT", &given->channel.aggregator}},
      .summary =
          "Ends a quarantine, by `evict` or by a rule: the worker of this name may join again.",
      .flags = WithClientFlags({}, &given->channel),
      .help =
          R"(It joins as a newcomer: on probation, its counts begin anew. A name that is not in quarantine ends with 2. Role admin.

Example:
  distroctl admit w7 aggregator.example:7700 --ca ca.pem --token_file admin.token)",
      .run = [given, console]() -> absl::StatusOr<int> {
        DISTRO_ASSIGN_OR_RETURN(const auto admin, OpenAdmin(given->channel));
        return console->Show(AdmitWorker(admin.get(), given->name));
      }};
}

}  // namespace distro::tools
