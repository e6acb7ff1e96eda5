#include "tools/distroctl/show_run.h"

#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/checksum.h"
#include "common/base/json.h"
#include "common/base/status_macros.h"
#include "common/run/run_config.h"
#include "tools/distroctl/admin.h"
#include "tools/distroctl/words.h"

namespace distro::tools {
namespace {

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

absl::StatusOr<Report> ShowRun(v1::AdminService::StubInterface* admin) {
  DISTRO_ASSIGN_OR_RETURN(
      const v1::GetRunResponse run,
      CallAdmin(admin, &v1::AdminService::StubInterface::GetRun, v1::GetRunRequest()));
  const std::string state = Word(run.state());
  if (run.run_id().empty()) {
    return Report{.text = absl::StrCat("no run: ", run.reason()),
                  .json = {{"state", state}, {"reason", run.reason()}}};
  }
  const std::string config = RunConfigToJson(run.config());
  DISTRO_ASSIGN_OR_RETURN(nlohmann::json parsed, ParseJson(config));
  return Report{
      .text = absl::StrFormat("run     %s\nstate   %s\nreason  %s\nepoch   %d\nround   %d of "
                              "%d\nhash    %s\nconfig  %s",
                              run.run_id(), state, run.reason(), run.epoch(), run.round(),
                              run.config().rounds(), ToHex(run.log_hash()), config),
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
      .summary = "Where the run stands, for what or whom it waits, and its whole configuration.",
      .flags = WithClientFlags({}, &given->channel),
      .help =
          R"(`state` is empty (no run yet), waiting, training, paused, draining or done; `hash` is the chain hash of the last
record. Role viewer or more.

Examples:
  distroctl run show aggregator.example:7700 --ca ca.pem --token_file viewer.token
  distroctl run show 127.0.0.1:7700 --insecure --output json | jq .round)",
      .run = [given, console]() -> absl::StatusOr<int> {
        DISTRO_ASSIGN_OR_RETURN(const auto admin, OpenAdmin(given->channel));
        return console->Show(ShowRun(admin.get()));
      }};
}

}  // namespace distro::tools
