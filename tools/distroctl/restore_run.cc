#include "tools/distroctl/restore_run.h"

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/epoch.h"
#include "common/base/output_path.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/base/utf8.h"
#include "common/model/checkpoint/companions.h"
#include "server/log/disk.h"
#include "server/log/restored_run.h"
#include "tools/archiver/archive_folder.h"

namespace distro::tools {
namespace {

// The returned object holds the folder's lock.
absl::StatusOr<std::unique_ptr<ArchiveFolder>> OpenArchiveFolder(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path + "/state", ignored)) {
    return absl::NotFoundError(absl::StrCat(
        "--archive: ", path, ": holds no copy of a run (an archiver's --data_dir does)"));
  }
  absl::StatusOr<std::unique_ptr<ArchiveFolder>> folder = ArchiveFolder::Open(path);
  if (!absl::IsFailedPrecondition(folder.status())) return folder;
  return absl::FailedPreconditionError(
      absl::StrCat("--archive: ", path,
                   ": an archiver works on it: stop it first with SIGTERM, with "
                   "which it also saves the newest round that it has"));
}

absl::StatusOr<server::RestoredRun> ReadArchive(const ArchiveFolder& folder,
                                                const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(const std::optional<ArchiveState> state, folder.Load());
  if (!state.has_value()) return absl::NotFoundError(absl::StrCat(path, ": holds no copy"));
  DISTRO_ASSIGN_OR_RETURN(std::optional<v1::StoredArchive> log, folder.LoadLog(*state));
  if (!log.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--archive: ", path,
                     ": has parameters only, as archivers before this version kept them, or "
                     "its log file is damaged: begin a new run from a published checkpoint"));
  }
  server::RestoredRun restored{.archive = *std::move(log),
                               // A lying aggregator's is not handed on; the log has the true ones.
                               .epoch = KeptEpoch(EpochId(state->epoch), absl::Now()).value(),
                               .snapshot = state->snapshot,
                               .snapshot_path = folder.SnapshotPath(state->snapshot.round())};
  absl::StatusOr<Companions> companions =
      ReadListedCompanions(restored.archive.run().companions(), folder.CompanionsPath());
  if (!companions.ok()) return absl::DataLossError(companions.status().message());
  restored.companions = *std::move(companions);
  return restored;
}

}  // namespace

absl::StatusOr<Report> RestoreRun(const RestoreRunOptions& options) {
  if (options.archive.empty())
    return absl::InvalidArgumentError("--archive: is required, the data folder of an archiver");
  if (options.data_dir.empty())
    return absl::InvalidArgumentError("--data_dir: is required, a new folder for an aggregator");
  DISTRO_RETURN_IF_ERROR(Annotate(TryOutputFolder(options.data_dir), "--data_dir"));
  DISTRO_ASSIGN_OR_RETURN(const auto folder, OpenArchiveFolder(options.archive));
  DISTRO_ASSIGN_OR_RETURN(const server::RestoredRun restored,
                          ReadArchive(*folder, options.archive));
  DISTRO_RETURN_IF_ERROR(Annotate(
      server::WriteRestoredRun(options.data_dir, restored, server::Disk::Real()), "restore"));
  const std::string& run_id = restored.archive.run().run_id();
  const uint64_t round = restored.snapshot.round();
  return Report{.text = absl::StrCat("restored ", ShownText(run_id), " in ", options.data_dir,
                                     ": it continues at round ", round,
                                     "; start the aggregator on this folder"),
                .json = {{"run_id", run_id}, {"round", round}, {"data_dir", options.data_dir}}};
}

Command RunRestoreCommand(const Console* console) {
  const auto options = std::make_shared<RestoreRunOptions>();
  return {
      .name = "run restore",
      .summary = "Makes a data folder for an aggregator from an archiver's, after a disk loss.",
      .flags = {{.name = "archive",
                 .value = &options->archive,
                 .help = "Data folder of an archiver that was stopped; only read. Required.",
                 .takes = Takes::kFolder},
                {.name = "data_dir",
                 .value = &options->data_dir,
                 .help = "Folder to write, new or empty. Required.",
                 .takes = Takes::kFolder}},
      .help =
          R"(The run continues at the first round that is not in the archiver's copy; workers and archivers that were ahead load a
snapshot again. docs/operations.md lists what is lost. A newer backup of the folder itself is the better choice.

Example:
  distroctl run restore --archive archive --data_dir data
  distro-aggregator --data_dir data ...)",
      .run = [options, console]() -> absl::StatusOr<int> {
        return console->Show(RestoreRun(*options));
      }};
}

}  // namespace distro::tools
