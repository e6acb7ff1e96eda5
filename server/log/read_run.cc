#include "server/log/read_run.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/replica/initial_snapshot.h"
#include "distro/v1/store.pb.h"
#include "server/log/run_file.h"
#include "server/log/snapshot_check.h"

namespace distro::server {
namespace {

constexpr uint64_t kMaxRunFileBytes = 4 << 20;

absl::Status Damage(absl::string_view path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(
      path, ": ", what,
      ": restore the file from a copy; without one a new run begins in an empty folder, for "
      "example from a checkpoint that a worker wrote"));
}

bool HoldsRecords(const std::string& dir) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(dir, error)) {
    if (absl::EndsWith(entry.path().string(), ".record")) return true;
  }
  return false;
}

// NotFound: there is none, and nothing says that there was.
absl::StatusOr<v1::StoredRun> ReadRunFile(const std::string& data_dir) {
  const std::string path = RunFilePath(data_dir);
  const absl::StatusOr<std::string> bytes = ReadFile(path, kMaxRunFileBytes);
  if (absl::IsNotFound(bytes.status()) && HoldsRecords(data_dir + "/rounds")) {
    return Damage(path, "is missing, but the folder has rounds");
  }
  if (absl::IsInvalidArgument(bytes.status())) return Damage(path, "is too large");
  DISTRO_RETURN_IF_ERROR(bytes.status());
  absl::StatusOr<v1::StoredRun> stored = ParseRunFile(*bytes);
  if (stored.ok()) return stored;
  if (absl::IsDataLoss(stored.status())) return Damage(path, stored.status().message());
  return Annotate(stored.status(), path);
}

absl::Status CheckSnapshot(const std::string& path, const v1::StoredRun& stored) {
  const absl::StatusOr<Sha256Digest> sha256 = Sha256OfFile(path);
  if (!sha256.ok()) return Damage(path, sha256.status().message());
  if (DigestBytes(*sha256) == stored.initial_snapshot().sha256()) return absl::OkStatus();
  return Damage(path, "its SHA-256 is not that of the run's initial snapshot");
}

}  // namespace

std::string InitialSnapshotPath(const std::string& data_dir) {
  return data_dir + "/snapshots/0.safetensors";
}

std::string RunFilePath(const std::string& data_dir) { return data_dir + "/run.pb"; }

absl::StatusOr<std::shared_ptr<const RunIdentity>> ReadRun(const std::string& data_dir,
                                                           SnapshotCheck check) {
  DISTRO_ASSIGN_OR_RETURN(const v1::StoredRun stored, ReadRunFile(data_dir));
  const std::string snapshot = InitialSnapshotPath(data_dir);
  if (check == SnapshotCheck::kSha256) DISTRO_RETURN_IF_ERROR(CheckSnapshot(snapshot, stored));
  auto layout = LayoutOfSnapshot(snapshot, stored.config());
  if (!layout.ok()) return Damage(snapshot, layout.status().message());
  return std::make_shared<const RunIdentity>(
      RunIdentity{stored.run_id(), stored.config(), stored.model_config_json(),
                  stored.initial_snapshot(), snapshot, *std::move(layout)});
}

}  // namespace distro::server
