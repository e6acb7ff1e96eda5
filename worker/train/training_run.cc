#include "worker/train/training_run.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/checksum.h"
#include "common/base/exceptions.h"
#include "common/base/folder.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utf8.h"
#include "common/base/version.h"
#include "common/model/checkpoint/snapshot.h"

namespace distro::worker {

namespace {

// Attempts, because a snapshot may be replaced by a newer one while it is downloaded.
constexpr int kSnapshotAttempts = 5;

}  // namespace

absl::StatusOr<std::unique_ptr<TrainingRun>> TrainingRun::Begin(const TrainerOptions& options,
                                                                Workload* workload,
                                                                const Dependencies& deps,
                                                                Trainer::Observer observer) {
  auto run = absl::WrapUnique(new TrainingRun(options, workload, deps));
  if (deps.state != nullptr) DISTRO_RETURN_IF_ERROR(run->LoadState());
  DISTRO_RETURN_IF_ERROR(run->JoinWithState());
  TrainerOptions chosen = options;
  chosen.micro_batch_samples = workload->micro_batch_samples();
  DISTRO_ASSIGN_OR_RETURN(run->trainer_,
                          Trainer::Create(std::move(chosen),
                                          {.run = &run->run_,
                                           .learner = workload->learner(),
                                           .objective = workload->objective(),
                                           .exchange = deps.exchange,
                                           .phases = deps.phases,
                                           .log = deps.log,
                                           .state = deps.state,
                                           .companions = &run->companions_,
                                           .resync = [run = run.get()] { return run->Resync(); },
                                           .ready = deps.ready},
                                          std::move(observer)));
  if (run->state_.has_value()) DISTRO_RETURN_IF_ERROR(run->RestoreState());
  return run;
}

absl::Status TrainingRun::Train() {
  const absl::Status status = CatchExceptions([this] { return trainer_->Run(); });
  trainer_->SaveState();
  return status;
}

// A temporary folder is made for each download, because in a run of weeks /tmp is cleaned. An
// interrupted download in the folder of the state is resumed.
absl::Status TrainingRun::JoinAndLoad(const v1::JoinRequest& request) {
  const bool temporary = deps_.state == nullptr;
  DISTRO_ASSIGN_OR_RETURN(const std::string folder,
                          temporary ? MakeTemporaryFolder("distro-worker") : deps_.state->path());
  const auto remove = absl::MakeCleanup([&] {
    std::error_code ignored;
    if (temporary) std::filesystem::remove_all(folder, ignored);
  });
  absl::Status status;
  for (int attempt = 0; attempt < kSnapshotAttempts; ++attempt) {
    DISTRO_RETURN_IF_ERROR(Join(request, folder));
    status = LoadSnapshot(folder);
    if (!NeedsResync(status)) return status;
    deps_.log->Warning("the snapshot was deleted: joining again to get a newer one",
                       {{"status", status}});
  }
  return status;
}

absl::Status TrainingRun::Join(const v1::JoinRequest& asked, const std::string& folder) {
  v1::JoinRequest request = asked;
  request.mutable_worker()->set_name(options_.worker);
  request.mutable_worker()->set_incarnation(options_.incarnation);
  request.set_version(std::string(Version()));
  workload_->Describe(&request);
  DISTRO_ASSIGN_OR_RETURN(run_, deps_.exchange->Join(request));
  deps_.log->Info("joined", {{"worker", options_.worker},
                             {"run", run_.run_id()},
                             {"epoch", run_.epoch()},
                             {"snapshot_round", run_.snapshot().round()},
                             {"head_round", run_.head_round()}});
  if (!built_) {
    if (deps_.wants_companions) DISTRO_RETURN_IF_ERROR(LoadCompanions(folder));
    DISTRO_RETURN_IF_ERROR(workload_->Build(run_, companions_));
    built_ = true;
    return absl::OkStatus();
  }
  if (HasTensorsOf(run_, workload_->layout().manifest())) return absl::OkStatus();
  return ErrorWithReason(
      absl::StatusCode::kFailedPrecondition, "other_run",
      absl::StrCat(
          "run ", ShownText(run_.run_id()),
          " has other tensors now than when this worker joined it: start the worker again"));
}

absl::Status TrainingRun::Resync() {
  v1::JoinRequest request;
  request.set_run_id(run_.run_id());
  return JoinAndLoad(request);
}

absl::Status TrainingRun::LoadCompanions(const std::string& folder) {
  const std::string companions = absl::StrCat(folder, "/companions");
  const auto remove = absl::MakeCleanup([&companions] {
    std::error_code ignored;
    std::filesystem::remove_all(companions, ignored);
  });
  const auto fetch = [this](const v1::CompanionFile& file, const std::string& path) {
    return deps_.exchange->DownloadCompanion(file, path);
  };
  DISTRO_ASSIGN_OR_RETURN(companions_, CollectCompanions(run_.companions(), companions, fetch));
  return absl::OkStatus();
}

absl::Status TrainingRun::LoadSnapshot(const std::string& folder) {
  const std::string path = absl::StrCat(folder, "/snapshot.safetensors");
  const auto remove = absl::MakeCleanup([&path] {
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  });
  DISTRO_RETURN_IF_ERROR(
      CheckSnapshotSize(run_.snapshot().size_bytes(), workload_->layout().elements()));
  DISTRO_RETURN_IF_ERROR(deps_.exchange->DownloadSnapshot(run_.snapshot(), path));
  DISTRO_RETURN_IF_ERROR(Annotate(workload_->learner()->Load(path, RoundId(run_.snapshot().round()),
                                                             run_.snapshot().log_hash()),
                                  "snapshot"));
  const uint64_t hash = workload_->learner()->StateHash();
  if (hash == run_.snapshot().state_hash()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "the snapshot of round ", run_.snapshot().round(), " has state hash ", ToHex(hash),
      ", the aggregator announced ", ToHex(run_.snapshot().state_hash())));
}

}  // namespace distro::worker
