#include "tools/archiver/publisher.h"

#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/status_util.h"
#include "common/model/checkpoint/round_folders.h"

namespace distro::tools {

Publisher::Publisher(const v1::GetRunResponse* run, Context context)
    : run_(run),
      context_(context),
      folders_(1, [this](const Folder& folder) { RunCommand(folder); }) {}

void Publisher::Publish(const Replica& replica, const Companions& companions) {
  const PublishOptions& options = *context_.options;
  if (options.dir.empty()) return;
  const ArchiverPhaseScope phase(context_.metrics, context_.clock, ArchiverPhase::kPublish);
  const uint64_t in_use = round_in_use_;
  last_round_ = replica.next_round();
  last_status_ = tools::Publish(options, replica, run_->model_config_json(), companions);
  if (!last_status_.ok()) {
    context_.metrics->failures_publish->Increment();
    context_.log->Error("folder not published",
                        {{"round", last_round_.value()}, {"status", last_status_}});
    return;
  }
  context_.metrics->folders_published->Increment();
  context_.log->Info("folder published", {{"round", last_round_.value()}, {"dir", options.dir}});
  const absl::Status removed =
      RemoveOldRoundFolders(options.dir, last_round_, options.keep,
                            in_use == 0 ? std::nullopt : std::optional(RoundId(in_use)));
  if (!removed.ok()) context_.log->Warning("older folder not removed", {{"status", removed}});
  if (context_.command == nullptr || folders_.Add({last_round_, replica.StateHash()})) return;
  context_.log->Warning(
      "publish command still runs: a newer folder takes the place of one that waits",
      {{"round", round_in_use_.load()}});
}

void Publisher::RunCommand(const Folder& folder) {
  const uint64_t round = folder.round.value();
  if (context_.state->ended()) return;
  round_in_use_ = round;
  const std::string path = PublishedPath(*context_.options, folder.round);
  std::error_code error;
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  const absl::Status status = context_.command->Run(
      {{"DISTRO_FOLDER", error ? path : whole.string()},
       {"DISTRO_ROUND", absl::StrCat(round)},
       {"DISTRO_RUN", run_->run_id()},
       {"DISTRO_STATE_HASH", ToHex(folder.state_hash)}},
      [&](absl::string_view line) {
        context_.log->Info("publish command prints", {{"round", round}, {"line", line}});
      });
  round_in_use_ = 0;
  if (absl::IsCancelled(status)) return;
  command_failed_ = !status.ok();
  if (status.ok()) {
    context_.log->Info("publish command done", {{"round", round}});
    return;
  }
  context_.metrics->failures_command->Increment();
  context_.log->Error("publish command failed: it runs again for the next folder",
                      {{"round", round}, {"status", status}});
}

absl::Status Publisher::LastStatus() const {
  if (!last_status_.ok()) {
    return Annotate(last_status_, absl::StrCat("--publish_dir: round ", last_round_.value(),
                                               " is not published; start it again"));
  }
  if (!command_failed_) return absl::OkStatus();
  return absl::UnknownError(absl::StrCat("--publish_command: failed for the last folder, ",
                                         PublishedPath(*context_.options, last_round_),
                                         ": start the archiver again, which publishes it again"));
}

}  // namespace distro::tools
