#include "tools/archiver/archive.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/epoch.h"
#include "common/base/reason.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/model/architecture.h"
#include "common/model/checkpoint/snapshot.h"
#include "common/run/run_config.h"
#include "kernels/cpu/cpu_backend.h"
#include "tools/archiver/archive_log.h"

namespace distro::tools {
namespace {

absl::StatusOr<std::unique_ptr<Layout>> LayoutOf(const v1::GetRunResponse& run,
                                                 const std::string& path) {
  DISTRO_ASSIGN_OR_RETURN(Manifest manifest, SnapshotManifest(path));
  const Sha256Digest& hash = manifest.hash();
  if (absl::string_view(reinterpret_cast<const char*>(hash.data()), hash.size()) !=
      run.manifest_hash()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": its tensors are not those of run ", run.run_id(),
                     ": the folder is of another run; give each run a folder of its own"));
  }
  DISTRO_ASSIGN_OR_RETURN(
      Layout layout,
      Layout::Create(std::move(manifest), static_cast<int>(run.config().segment_blocks())));
  return std::make_unique<Layout>(std::move(layout));
}

// Loads the replica from the folder's snapshot.
absl::StatusOr<Archive> Read(const v1::GetRunResponse& run, const ArchiveState& state, int threads,
                             const ArchiveFolder& folder) {
  const std::string path = folder.SnapshotPath(state.snapshot.round());
  Archive archive;
  archive.state = state;
  archive.log = ArchiveOf(run);
  DISTRO_ASSIGN_OR_RETURN(const auto kept, folder.LoadLog(state));
  if (kept.has_value()) *archive.log.mutable_headers() = kept->headers();
  DISTRO_ASSIGN_OR_RETURN(archive.layout, LayoutOf(run, path));
  TensorBuffer parameters(*archive.layout);
  DISTRO_RETURN_IF_ERROR(ReadSnapshot(path, *archive.layout, &parameters));
  std::vector<Backend*> backends;
  for (int i = 0; i < threads; ++i) {
    archive.backends.push_back(MakeCpuBackend());
    backends.push_back(archive.backends.back().get());
  }
  archive.replica =
      std::make_unique<Replica>(archive.layout.get(), std::move(backends), std::move(parameters),
                                RoundId(state.snapshot.round()), state.snapshot.log_hash());
  if (archive.replica->StateHash() == state.snapshot.state_hash()) return archive;
  return absl::DataLossError(absl::StrCat(path, ": state hash ",
                                          ToHex(archive.replica->StateHash()), ", not ",
                                          ToHex(state.snapshot.state_hash())));
}

// The reason why the folder's copy cannot be used; empty: it can.
absl::StatusOr<std::string> Useless(const v1::GetRunResponse& run, const ArchiveState& held,
                                    const std::string& folder) {
  if (held.run_id != run.run_id()) {
    return ErrorWithReason(absl::StatusCode::kFailedPrecondition, "other_run",
                           absl::StrCat("--data_dir: ", folder, ": holds run ", held.run_id,
                                        ", and the aggregator run ", run.run_id(),
                                        ": give each run a folder of its own"));
  }
  const uint64_t round = held.snapshot.round();
  if (round < run.first_round())
    return absl::StrCat("its round ", round, " is before the log's first, ", run.first_round());
  // Nothing that comes would show it: there may be no further round.
  const bool other_history =
      round == run.round() && round > 0 && held.snapshot.log_hash() != run.log_hash();
  if (round > run.round() || other_history) {
    return absl::StrCat("diverged: its round ", round, " is none of this log, which is at ",
                        run.round(), ": the aggregator went back to a backup");
  }
  return std::string();
}

// With workers: python, which may train a part of the model or one that is not known here, the disk
// is the only bound.
absl::Status CheckSize(const v1::GetRunResponse& run) {
  if (run.config().workers() == v1::WORKERS_PYTHON) return absl::OkStatus();
  const auto model = ParseModelConfig(run.model_config_json());
  if (!model.ok()) return absl::OkStatus();
  DISTRO_ASSIGN_OR_RETURN(Manifest manifest, Manifest::Create((*model)->Tensors()));
  DISTRO_ASSIGN_OR_RETURN(const Layout layout,
                          Layout::Create(std::move(manifest), kDefaultSegmentBlocks));
  return CheckSnapshotSize(run.snapshots(0).size_bytes(), layout.elements());
}

absl::StatusOr<Archive> FetchNewest(const v1::GetRunResponse& run, uint64_t epoch, int threads,
                                    ArchiveFolder* folder, const SnapshotFetcher& fetch) {
  ArchiveState state;
  state.run_id = run.run_id();
  state.epoch = std::max(epoch, KeptEpoch(EpochId(run.epoch()), absl::Now()).value());
  state.snapshot = run.snapshots(0);
  DISTRO_RETURN_IF_ERROR(CheckSize(run));
  DISTRO_RETURN_IF_ERROR(fetch(state.snapshot, folder->SnapshotPath(state.snapshot.round())));
  absl::StatusOr<Archive> archive = Read(run, state, threads, *folder);
  if (!archive.ok()) return Annotate(archive.status(), "the aggregator's newest snapshot");
  DISTRO_RETURN_IF_ERROR(folder->SaveState(state, archive->log));
  return archive;
}

}  // namespace

absl::StatusOr<Archive> OpenArchive(const v1::GetRunResponse& run,
                                    absl::StatusOr<std::optional<ArchiveState>> held, int threads,
                                    ArchiveFolder* folder, const SnapshotFetcher& fetch, Log* log) {
  DISTRO_RETURN_IF_ERROR(CheckValuesAreKnown(run.config()));
  std::string useless;
  uint64_t epoch = 0;
  if (absl::IsDataLoss(held.status())) {
    useless = std::string(held.status().message());
  } else {
    DISTRO_RETURN_IF_ERROR(held.status());
  }
  if (held.ok() && held->has_value()) {
    epoch = (*held)->epoch;
    DISTRO_ASSIGN_OR_RETURN(useless, Useless(run, **held, folder->path()));
    if (useless.empty()) {
      absl::StatusOr<Archive> archive = Read(run, **held, threads, *folder);
      if (archive.ok() || ReasonOf(archive.status()) == "version") return archive;
      useless = std::string(archive.status().message());
    }
  }
  if (!useless.empty()) {
    log->Warning("own copy set aside; starting from the aggregator's newest snapshot",
                 {{"reason", useless}});
    DISTRO_RETURN_IF_ERROR(folder->Reset());
  }
  return FetchNewest(run, epoch, threads, folder, fetch);
}

}  // namespace distro::tools
