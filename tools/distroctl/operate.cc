#include "tools/distroctl/operate.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/checksum.h"
#include "common/base/ids.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/base/utf8.h"
#include "common/run/run_config.h"
#include "tools/distroctl/admin.h"
#include "tools/distroctl/report.h"

namespace distro::tools {
namespace {

using Admin = v1::AdminService::StubInterface;

Flag ReasonFlag(std::string* reason) {
  return {.name = "reason",
          .value = reason,
          .help = "Reason, at most 200 bytes; shown in logs and lists, and to an evicted worker."};
}

nlohmann::json SnapshotsJson(const v1::GetRunResponse& run) {
  nlohmann::json snapshots = nlohmann::json::array();
  for (const v1::SnapshotInfo& snapshot : run.snapshots()) {
    snapshots.push_back({{"round", snapshot.round()},
                         {"bytes", snapshot.size_bytes()},
                         {"state_hash", ToHex(snapshot.state_hash())}});
  }
  return snapshots;
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

absl::StatusOr<Report> ExtendRun(Admin* admin, uint64_t rounds) {
  if (rounds == 0)
    return absl::InvalidArgumentError("--rounds: is required, how many the run has from now on");
  v1::ExtendRequest request;
  request.set_rounds(rounds);
  DISTRO_ASSIGN_OR_RETURN(const v1::ExtendResponse response,
                          CallAdmin(admin, &Admin::Extend, request));
  const v1::Extension& extension = response.extension();
  return Report{.text = absl::StrFormat(
                    "extended to %d rounds: from round %d on the learning rate falls from "
                    "%g to the end's; start workers and archivers that have ended again",
                    extension.rounds(), extension.from_round(), extension.from_rate()),
                .json = {{"rounds", extension.rounds()},
                         {"from_round", extension.from_round()},
                         {"from_rate", extension.from_rate()}}};
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
      .summary =
          "Ends the open round and opens no other until `run resume`; workers keep sessions.",
      .flags = WithClientFlags({ReasonFlag(&given->reason)}, &given->channel),
      .help =
          R"(Remains in force after a restart of the aggregator. May be repeated; the last reason stays. Role admin.

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
          .help = R"(May be repeated. Role admin.

Example:
  distroctl run resume aggregator.example:7700 --ca ca.pem --token_file admin.token)",
          .run = [given, console]() -> absl::StatusOr<int> {
            DISTRO_ASSIGN_OR_RETURN(const auto admin, OpenAdmin(given->channel));
            return console->Show(ResumeRun(admin.get()));
          }};
}

Command RunExtendCommand(const Console* console) {
  struct Given {
    ChannelOptions channel;
    uint64_t rounds = 0;
  };
  const auto given = std::make_shared<Given>();
  return {
      .name = "run extend",
      .arguments = {{"HOST:PORT", &given->channel.aggregator}},
      .summary = "Gives the run more rounds, during training or after its end.",
      .flags = WithClientFlags(
          {{.name = "rounds", .value = &given->rounds, .help = "The new total number. Required."}},
          &given->channel),
      .help =
          R"(From the next round that opens, the learning rate follows a cosine from its present value to min_learning_rate at the new
end. If the run was done, the rate stays at its last value. Training workers are told; start workers and archivers that have
ended again. May be repeated. Role admin.

Example:
  distroctl run extend aggregator.example:7700 --rounds 20000 --ca ca.pem --token_file admin.token)",
      .run = [given, console]() -> absl::StatusOr<int> {
        DISTRO_ASSIGN_OR_RETURN(const auto admin, OpenAdmin(given->channel));
        return console->Show(ExtendRun(admin.get(), given->rounds));
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
              "Refuses everything from the worker of this name until `admit`; the worker is told "
              "the reason and ends.",
          .flags = WithClientFlags({ReasonFlag(&given->reason)}, &given->channel),
          .help = R"(The name need not be known. Remains in force after restarts. Role admin.

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
          R"(The worker joins as a new one: on probation, with counts from 0. A name that is not in quarantine ends with 2. Role admin.

Example:
  distroctl admit w7 aggregator.example:7700 --ca ca.pem --token_file admin.token)",
      .run = [given, console]() -> absl::StatusOr<int> {
        DISTRO_ASSIGN_OR_RETURN(const auto admin, OpenAdmin(given->channel));
        return console->Show(AdmitWorker(admin.get(), given->name));
      }};
}

absl::StatusOr<Report> ShowRun(v1::AdminService::StubInterface* admin) {
  DISTRO_ASSIGN_OR_RETURN(
      const v1::GetRunResponse run,
      CallAdmin(admin, &v1::AdminService::StubInterface::GetRun, v1::GetRunRequest()));
  const std::string state = Word(run.state());
  if (run.run_id().empty()) {
    return Report{.text = absl::StrCat("no run: ", ShownText(run.reason())),
                  .json = {{"state", state}, {"reason", run.reason()}}};
  }
  const std::string config = RunConfigToJson(run.config());
  DISTRO_ASSIGN_OR_RETURN(nlohmann::json parsed, ParseJson(config));
  return Report{
      .text = absl::StrFormat("run     %s\nstate   %s\nreason  %s\nepoch   %d\nround   %d of "
                              "%d\nhash    %s\nconfig  %s",
                              ShownText(run.run_id()), state, ShownText(run.reason()), run.epoch(),
                              run.round(), run.config().rounds(), ToHex(run.log_hash()), config),
      .json = {{"run_id", run.run_id()},
               {"state", state},
               {"reason", run.reason()},
               {"epoch", run.epoch()},
               {"round", run.round()},
               {"log_hash", ToHex(run.log_hash())},
               {"first_round", run.first_round()},
               {"snapshots", SnapshotsJson(run)},
               {"config", std::move(parsed)}}};
}

Command RunShowCommand(const Console* console) {
  struct Given {
    ChannelOptions channel;
  };
  const auto given = std::make_shared<Given>();
  return {
      .name = "run show",
      .arguments = {{"HOST:PORT", &given->channel.aggregator}},
      .summary = "Shows the run's state, what or whom it waits for, and its full configuration.",
      .flags = WithClientFlags({}, &given->channel),
      .help =
          R"(`state` is empty (no run yet), waiting, training, paused, draining or done; `hash` is the chain hash of the last
record. Role viewer or higher.

Examples:
  distroctl run show aggregator.example:7700 --ca ca.pem --token_file viewer.token
  distroctl run show 127.0.0.1:7700 --insecure --output json | jq .round)",
      .run = [given, console]() -> absl::StatusOr<int> {
        DISTRO_ASSIGN_OR_RETURN(const auto admin, OpenAdmin(given->channel));
        return console->Show(ShowRun(admin.get()));
      }};
}

}  // namespace distro::tools
