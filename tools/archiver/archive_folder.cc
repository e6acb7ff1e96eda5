#include "tools/archiver/archive_folder.h"

#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/memory/memory.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/folder.h"
#include "common/base/mapped_file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/model/checkpoint/snapshot.h"
#include "tools/archiver/archive_log.h"

namespace distro::tools {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kMaxStateBytes = 1 << 16;
// A header has at most 1000 KiB, as has the description of the run.
constexpr uint64_t kMaxLogBytes = (kArchivedHeaders + 8) * kMaxRoundHeaderBytes;

bool IsOfRound(absl::string_view name) {
  return absl::StartsWith(name, "snapshot-") || absl::StartsWith(name, "log-");
}

absl::Status CheckFile(const std::string& path, const v1::SnapshotInfo& info) {
  const absl::StatusOr<MappedFile> file = MappedFile::Open(path);
  if (!file.ok()) return absl::DataLossError(file.status().message());
  if (file->bytes().size() != info.size_bytes()) {
    return absl::DataLossError(absl::StrCat(path, ": has ", file->bytes().size(),
                                            " bytes, and the state file says ", info.size_bytes()));
  }
  const Sha256Digest digest = Sha256(file->bytes());
  if (AsBytes(digest) == info.sha256()) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat(path, ": has SHA-256 ", ToHex(digest), ", and the state file another"));
}

absl::Status FillIn(const std::string& path, v1::SnapshotInfo* info) {
  DISTRO_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const Sha256Digest digest = Sha256(file.bytes());
  info->set_size_bytes(file.bytes().size());
  info->set_sha256(digest.data(), digest.size());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<ArchiveFolder>> ArchiveFolder::Open(const std::string& path) {
  DISTRO_RETURN_IF_ERROR(CreateFolders(path));
  DISTRO_ASSIGN_OR_RETURN(FolderLock lock, FolderLock::Take(path));
  return absl::WrapUnique(new ArchiveFolder(path, std::move(lock)));
}

std::string ArchiveFolder::SnapshotPath(uint64_t round) const {
  return absl::StrCat(path_, "/snapshot-", round, ".safetensors");
}

std::string ArchiveFolder::LogPath(uint64_t round) const {
  return absl::StrCat(path_, "/log-", round, ".pb");
}

std::string ArchiveFolder::StatePath() const { return path_ + "/state"; }

absl::StatusOr<std::optional<ArchiveState>> ArchiveFolder::Load() const {
  const absl::StatusOr<std::string> text = ReadFile(StatePath(), kMaxStateBytes);
  if (absl::IsNotFound(text.status())) return std::nullopt;
  if (absl::IsInvalidArgument(text.status())) return absl::DataLossError(text.status().message());
  DISTRO_RETURN_IF_ERROR(text.status());
  const absl::StatusOr<ArchiveState> state = ParseArchiveState(*text);
  if (!state.ok()) return Annotate(state.status(), path_);
  DISTRO_RETURN_IF_ERROR(CheckFile(SnapshotPath(state->snapshot.round()), state->snapshot));
  return *state;
}

absl::StatusOr<std::optional<v1::StoredArchive>> ArchiveFolder::LoadLog(
    const ArchiveState& state) const {
  const std::string path = LogPath(state.snapshot.round());
  const auto bytes = ReadFile(path, kMaxLogBytes);
  if (!bytes.ok()) return std::nullopt;
  absl::StatusOr<v1::StoredArchive> log = ParseArchiveLog(*bytes);
  if (absl::IsFailedPrecondition(log.status())) return Annotate(log.status(), path);
  if (!log.ok() || log->run().run_id() != state.run_id) return std::nullopt;
  return *std::move(log);
}

absl::Status ArchiveFolder::Save(const Replica& replica, const v1::StoredArchive& log,
                                 ArchiveState* state) {
  RemoveLeftovers();
  const absl::Status status = Write(replica, log, state);
  if (!status.ok()) RemoveLeftovers();
  return status;
}

absl::Status ArchiveFolder::Write(const Replica& replica, const v1::StoredArchive& log,
                                  ArchiveState* state) {
  const uint64_t round = replica.next_round().value();
  const std::string path = SnapshotPath(round);
  DISTRO_RETURN_IF_ERROR(WriteSnapshot(path, replica.layout(), replica.parameters(), {}));
  ArchiveState saved = *state;
  saved.snapshot.set_round(round);
  saved.snapshot.set_log_hash(replica.log_hash());
  saved.snapshot.set_state_hash(replica.StateHash());
  DISTRO_RETURN_IF_ERROR(FillIn(path, &saved.snapshot));
  DISTRO_RETURN_IF_ERROR(SaveState(saved, log));
  *state = std::move(saved);
  return absl::OkStatus();
}

absl::Status ArchiveFolder::SaveState(const ArchiveState& state, const v1::StoredArchive& log) {
  DISTRO_RETURN_IF_ERROR(
      WriteFileAtomically(LogPath(state.snapshot.round()), EncodeArchiveLog(log)));
  DISTRO_RETURN_IF_ERROR(WriteFileAtomically(StatePath(), EncodeArchiveState(state)));
  RemoveOtherRounds(state.snapshot.round());
  return absl::OkStatus();
}

void ArchiveFolder::RemoveLeftovers() const {
  const absl::StatusOr<std::string> text = ReadFile(StatePath(), kMaxStateBytes);
  if (!text.ok()) return;
  const absl::StatusOr<ArchiveState> state = ParseArchiveState(*text);
  if (state.ok()) RemoveOtherRounds(state->snapshot.round());
}

void ArchiveFolder::RemoveOtherRounds(uint64_t kept_round) const {
  const std::string kept = SnapshotPath(kept_round), kept_log = LogPath(kept_round);
  const absl::StatusOr<std::vector<std::string>> names = NamesIn(path_);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const std::string path = absl::StrCat(path_, "/", name);
    std::error_code ignored;
    if (IsOfRound(name) && path != kept && path != kept_log) fs::remove(path, ignored);
  }
}

absl::Status ArchiveFolder::Reset() {
  const fs::path aside = fs::path(path_) / "set_aside";
  std::error_code error;
  const bool stored = fs::exists(StatePath(), error);
  if (stored) fs::remove_all(aside, error);
  if (error) return ErrnoToStatus(error.value(), "remove", aside.string());
  if (stored) DISTRO_RETURN_IF_ERROR(CreateFolders(aside.string()));
  DISTRO_ASSIGN_OR_RETURN(const std::vector<std::string> names, NamesIn(path_));
  for (const std::string& name : names) {
    const bool whole = !absl::EndsWith(name, ".part") && !absl::EndsWith(name, ".tmp");
    if (name != "state" && !(IsOfRound(name) && whole)) continue;
    const std::string path = absl::StrCat(path_, "/", name);
    if (stored)
      fs::rename(path, aside / name, error);
    else
      fs::remove(path, error);
    if (error) return ErrnoToStatus(error.value(), stored ? "move" : "remove", path);
  }
  if (stored) DISTRO_RETURN_IF_ERROR(SyncFolder(aside.string()));
  return SyncFolder(path_);
}

}  // namespace distro::tools
