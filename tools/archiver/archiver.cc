#include "tools/archiver/archiver.h"

#include <optional>
#include <utility>

#include "absl/memory/memory.h"
#include "common/base/checksum.h"
#include "common/base/status_macros.h"
#include "common/client/status_action.h"
#include "tools/archiver/session.h"

namespace distro::tools {
namespace {

// Beginnings in sequence that lead to no round, after which another one would not help either.
constexpr int kFruitlessBeginnings = 3;

}  // namespace

absl::StatusOr<std::unique_ptr<Archiver>> Archiver::Create(ArchiverOptions options,
                                                           ArchiverMetrics* metrics, Log* log,
                                                           const Clock* clock) {
  auto archiver = absl::WrapUnique(new Archiver(std::move(options), metrics, log, clock));
  DISTRO_ASSIGN_OR_RETURN(
      archiver->client_,
      AggregatorClient::Open(archiver->options_.channel, archiver->options_.backoff,
                             &archiver->stopper_, log, clock));
  DISTRO_ASSIGN_OR_RETURN(archiver->folder_, ArchiveFolder::Open(archiver->options_.data_dir));
  return archiver;
}

absl::Status Archiver::Run() {
  Backoff backoff(options_.backoff, RandomSeed());
  int fruitless = 0;
  while (true) {
    uint64_t replayed = 0;
    const absl::Status status = Follow(&replayed);
    metrics_->ready = false;
    if (stopper_.stopped() && absl::IsCancelled(status)) return absl::OkStatus();
    if (status.ok() || stopper_.stopped()) return status;
    if (ActionFor(status) != StatusAction::kResync) return status;
    fruitless = replayed > 0 ? 0 : fruitless + 1;
    if (fruitless == kFruitlessBeginnings) return status;
    log_->Warning("starts again from the newest snapshot", {{"reason", status}});
    DISTRO_RETURN_IF_ERROR(folder_->Reset());
    stopper_.Sleep(backoff.Next());
  }
}

absl::Status Archiver::Follow(uint64_t* replayed) {
  absl::StatusOr<std::optional<ArchiveState>> held = folder_->Load();
  const uint64_t epoch = held.ok() && held->has_value() ? (*held)->epoch : 0;
  DISTRO_ASSIGN_OR_RETURN(v1::GetRunResponse run, client_->AwaitRun(epoch));
  const auto fetch = [this](const v1::SnapshotInfo& snapshot, const std::string& path) {
    return client_->FetchSnapshot(snapshot, path);
  };
  DISTRO_ASSIGN_OR_RETURN(Archive archive, OpenArchive(run, std::move(held), options_.threads,
                                                       folder_.get(), fetch, log_));
  log_->Info("follows", {{"run", run.run_id()},
                         {"epoch", run.epoch()},
                         {"round", archive.replica->next_round().value()},
                         {"head", run.round()},
                         {"state_hash", ToHex(archive.replica->StateHash())}});
  Session session(std::move(run), std::move(archive),
                  {.options = &options_,
                   .client = client_.get(),
                   .folder = folder_.get(),
                   .metrics = metrics_,
                   .stopper = &stopper_,
                   .log = log_,
                   .clock = clock_});
  const absl::Status status = session.Run();
  *replayed = session.replayed_rounds();
  return status;
}

}  // namespace distro::tools
