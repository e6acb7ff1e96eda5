#include "tools/archiver/archiver.h"

#include <optional>
#include <string>
#include <utility>

#include "absl/memory/memory.h"
#include "common/base/checksum.h"
#include "common/base/epoch.h"
#include "common/base/file.h"
#include "common/base/output_path.h"
#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/client/backoff.h"
#include "common/client/follow/head_watch.h"
#include "common/client/follow/snapshot_fetch.h"
#include "common/client/status_action.h"
#include "common/net/http/object_path.h"
#include "tools/archiver/archive_replay.h"

namespace distro::tools {
namespace {

// Consecutive starts without a replayed round, after which another one would not help either.
constexpr int kFruitlessBeginnings = 3;

// Before hours of replay.
absl::Status TryOutputs(const ArchiverOptions& options) {
  DISTRO_RETURN_IF_ERROR(Annotate(TryOutputFolder(options.data_dir), "--data_dir"));
  if (options.publish.dir.empty()) return absl::OkStatus();
  return Annotate(TryOutputFolder(options.publish.dir), "--publish_dir");
}

}  // namespace

absl::StatusOr<std::unique_ptr<Archiver>> Archiver::Create(ArchiverOptions options,
                                                           ArchiverMetrics* metrics, Log* log,
                                                           const Clock* clock) {
  DISTRO_RETURN_IF_ERROR(TryOutputs(options));
  auto archiver = absl::WrapUnique(new Archiver(std::move(options), metrics, log, clock));
  DISTRO_ASSIGN_OR_RETURN(
      archiver->client_,
      AggregatorClient::Open(archiver->options_.channel, {.state = &archiver->state_,
                                                          .meter = &archiver->meter_,
                                                          .log = log,
                                                          .clock = clock,
                                                          .backoff = archiver->options_.backoff,
                                                          .seed = RandomWord()}));
  DISTRO_ASSIGN_OR_RETURN(archiver->folder_, ArchiveFolder::Open(archiver->options_.data_dir));
  WarnIfNamesMayBeLost(archiver->options_.data_dir, log);
  const std::string& lines = archiver->options_.metrics_file;
  absl::StatusOr<std::unique_ptr<RoundLines>> opened = RoundLines::Open(
      lines.empty() ? archiver->options_.data_dir + "/metrics.jsonl" : lines, log, clock);
  if (!opened.ok()) return Annotate(opened.status(), "--metrics_file");
  archiver->lines_ = *std::move(opened);
  if (const std::string& command = archiver->options_.publish.command; !command.empty())
    archiver->publish_command_ = std::make_unique<ShellCommand>(command);
  return archiver;
}

absl::Status Archiver::Run() {
  Backoff backoff(options_.backoff, client_->follower().seed + 5);
  int fruitless = 0;
  while (true) {
    uint64_t replayed = 0;
    const absl::Status status = Follow(&replayed);
    metrics_->ready = false;
    if (state_.ended() && absl::IsCancelled(status)) return absl::OkStatus();
    if (status.ok() || state_.ended()) return status;
    if (ActionFor(status) != StatusAction::kResync) return status;
    fruitless = replayed > 0 ? 0 : fruitless + 1;
    if (fruitless == kFruitlessBeginnings) return status;
    log_->Warning("starts again from the newest snapshot", {{"reason", status}});
    DISTRO_RETURN_IF_ERROR(folder_->Reset());
    state_.Sleep(backoff.Next());
  }
}

absl::StatusOr<v1::GetRunResponse> Archiver::AwaitRunAfter(const ArchiveState* held) {
  DISTRO_ASSIGN_OR_RETURN(v1::GetRunResponse run,
                          AwaitRun(client_->follower(), client_->control(), &contact_));
  if (held == nullptr || held->run_id != run.run_id()) return run;
  state_.ObserveEpoch(EpochId(held->epoch));
  if (run.epoch() >= held->epoch) return run;
  return AwaitRun(client_->follower(), client_->control(), &contact_);
}

absl::Status Archiver::Follow(uint64_t* replayed) {
  absl::StatusOr<std::optional<ArchiveState>> held = folder_->Load();
  if (held.ok() && held->has_value())
    (*held)->epoch = KeptEpoch(EpochId((*held)->epoch), clock_->WallNow()).value();
  const Follower& follower = client_->follower();
  DISTRO_ASSIGN_OR_RETURN(v1::GetRunResponse run,
                          AwaitRunAfter(held.ok() && held->has_value() ? &**held : nullptr));
  if (!IsRunId(run.run_id())) return absl::InvalidArgumentError("run_id: is not a run id");
  state_.ObserveHead(EpochId(run.epoch()), RoundId(run.round()));
  const MirrorList chosen{
      .run_id = run.run_id(),
      .urls = ChosenMirrors(options_.mirrors, {run.mirrors().begin(), run.mirrors().end()})};
  Mirrors mirrors(follower, chosen);
  const auto fetch = [&](const v1::SnapshotInfo& snapshot, const std::string& path) {
    return FetchSnapshot(follower, client_->snapshots(), snapshot, path, &mirrors);
  };
  DISTRO_ASSIGN_OR_RETURN(Archive archive, OpenArchive(run, std::move(held), options_.threads,
                                                       folder_.get(), fetch, log_));
  DISTRO_ASSIGN_OR_RETURN(
      archive.companions,
      CollectCompanions(run.companions(), folder_->CompanionsPath(),
                        [&](const v1::CompanionFile& file, const std::string& path) {
                          return FetchCompanion(follower, client_->snapshots(), file, path);
                        }));
  log_->Info("following the run", {{"run", run.run_id()},
                                   {"epoch", run.epoch()},
                                   {"round", archive.replica->next_round().value()},
                                   {"head", run.round()},
                                   {"state_hash", ToHex(archive.replica->StateHash())}});
  ArchiveReplay replay(std::move(run), std::move(archive),
                       {.options = &options_,
                        .client = client_.get(),
                        .folder = folder_.get(),
                        .metrics = metrics_,
                        .log = log_,
                        .clock = clock_,
                        .lines = lines_.get(),
                        .publish_command = publish_command_.get(),
                        .mirrors = chosen.urls});
  const absl::Status status = replay.Run();
  *replayed = replay.replayed_rounds();
  return status;
}

}  // namespace distro::tools
