#include "server/log/read_run.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/method/methods.h"
#include "common/model/checkpoint/initial_snapshot.h"
#include "distro/v1/store.pb.h"
#include "server/log/run_identity.h"
#include "server/log/snapshot_check.h"
#include "server/log/snapshot_store.h"

namespace distro::server {
namespace {

constexpr uint64_t kMaxRunFileBytes = 4 << 20;

absl::Status RunDamage(absl::string_view what) {
  return absl::DataLossError(absl::StrCat(
      what,
      ": restore the file from a copy; without one a new run begins in an empty folder, for "
      "example from a checkpoint that a worker wrote"));
}

absl::Status ListDamage(absl::string_view what) {
  return absl::DataLossError(absl::StrCat(
      what,
      ": restore the file from a copy; without one remove it: distro-archiver uploads another "
      "snapshot"));
}

bool HoldsRecords(const std::string& dir) {
  const absl::StatusOr<std::vector<std::string>> names = NamesIn(dir);
  return names.ok() && std::any_of(names->begin(), names->end(), [](const std::string& name) {
           return absl::EndsWith(name, ".record");
         });
}

// NotFound: there is no run, and no trace of one.
absl::StatusOr<v1::StoredRun> ReadRunFile(const std::string& data_dir) {
  const std::string path = RunFilePath(data_dir);
  const absl::StatusOr<std::string> bytes = ReadFile(path, kMaxRunFileBytes);
  if (absl::IsNotFound(bytes.status()) && HoldsRecords(data_dir + "/rounds")) {
    return RunDamage(path + ": is missing, but the folder has rounds");
  }
  if (absl::IsInvalidArgument(bytes.status())) return RunDamage(bytes.status().message());
  DISTRO_RETURN_IF_ERROR(bytes.status());
  absl::StatusOr<v1::StoredRun> stored = ParseRunFile(*bytes);
  if (stored.ok()) return stored;
  const absl::Status status = Annotate(stored.status(), path);
  return absl::IsDataLoss(status) ? RunDamage(status.message()) : status;
}

}  // namespace

std::string SnapshotPath(const std::string& data_dir, uint64_t round) {
  return absl::StrCat(data_dir, "/snapshots/", round, ".safetensors");
}

std::string CompanionsDir(const std::string& data_dir) { return data_dir + "/companions"; }

std::string SnapshotListPath(const std::string& data_dir) { return data_dir + "/snapshots.pb"; }

std::string RunFilePath(const std::string& data_dir) { return data_dir + "/run.pb"; }

absl::StatusOr<std::shared_ptr<const RunIdentity>> ReadRun(const std::string& data_dir,
                                                           SnapshotCheck check) {
  DISTRO_ASSIGN_OR_RETURN(const v1::StoredRun stored, ReadRunFile(data_dir));
  const std::string snapshot = SnapshotPath(data_dir, stored.initial_snapshot().round());
  if (check == SnapshotCheck::kSha256) {
    const absl::Status status = CheckStoredSnapshot(snapshot, stored.initial_snapshot());
    if (!status.ok()) return RunDamage(status.message());
    const auto companions = ReadListedCompanions(stored.companions(), CompanionsDir(data_dir));
    if (!companions.ok()) return RunDamage(companions.status().message());
  }
  auto layout = LayoutOfSnapshot(snapshot, stored.config());
  if (!layout.ok()) return RunDamage(absl::StrCat(snapshot, ": ", layout.status().message()));
  auto method =
      MethodOf(stored.config()).MakeRounds(stored.config(), *layout, stored.model_config_json());
  if (!method.ok()) return RunDamage(method.status().message());
  return std::make_shared<const RunIdentity>(
      RunIdentity{stored.run_id(), stored.config(), stored.model_config_json(),
                  stored.initial_snapshot(), snapshot, *std::move(layout), *std::move(method),
                  stored.companions(), CompanionsDir(data_dir), stored.created_sha256()});
}

absl::StatusOr<std::vector<v1::SnapshotInfo>> ReadSnapshotList(const std::string& data_dir) {
  const std::string path = SnapshotListPath(data_dir);
  const absl::StatusOr<std::string> bytes = ReadFile(path, kMaxRunFileBytes);
  if (absl::IsNotFound(bytes.status())) return std::vector<v1::SnapshotInfo>();
  if (absl::IsInvalidArgument(bytes.status())) return ListDamage(bytes.status().message());
  DISTRO_RETURN_IF_ERROR(bytes.status());
  const absl::StatusOr<v1::StoredSnapshots> stored = ParseSnapshotsFile(*bytes);
  if (stored.ok()) return std::vector(stored->snapshots().begin(), stored->snapshots().end());
  const absl::Status status = Annotate(stored.status(), path);
  return absl::IsDataLoss(status) ? ListDamage(status.message()) : status;
}

absl::Status CheckStoredSnapshot(const std::string& path, const v1::SnapshotInfo& info) {
  const absl::StatusOr<Sha256Digest> sha256 = Sha256OfFile(path);
  if (!sha256.ok()) return absl::DataLossError(absl::StrCat(path, ": ", sha256.status().message()));
  if (DigestBytes(*sha256) == info.sha256()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path, ": its SHA-256 is not that of the snapshot before round ", info.round()));
}

}  // namespace distro::server
