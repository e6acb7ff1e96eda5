#include "worker/state/state_dir.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "common/base/file.h"
#include "common/base/ids.h"
#include "common/base/output_path.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"

namespace distro::worker {
namespace {

constexpr uint64_t kMaxNameFileBytes = 256;

}  // namespace

absl::StatusOr<std::unique_ptr<StateDir>> StateDir::Open(const std::string& dir, Log* log) {
  DISTRO_RETURN_IF_ERROR(TryOutputFolder(dir));
  DISTRO_RETURN_IF_ERROR(CreateFolders(dir));
  absl::StatusOr<FolderLock> lock = FolderLock::Take(dir);
  if (lock.status().code() == absl::StatusCode::kFailedPrecondition) {
    return absl::InvalidArgumentError(
        absl::StrCat(dir, ": another worker has it; give each worker a --state_dir of its own"));
  }
  DISTRO_RETURN_IF_ERROR(lock.status());
  WarnIfNamesMayBeLost(dir, log);
  return absl::WrapUnique(new StateDir(dir, *std::move(lock), log));
}

std::string StateDir::StatePath() const { return absl::StrCat(dir_, "/worker.state"); }

absl::StatusOr<std::string> StateDir::KeepName(const std::string& fresh) {
  const std::string path = absl::StrCat(dir_, "/name");
  const absl::StatusOr<std::string> kept = ReadTextFile(path, kMaxNameFileBytes);
  if (kept.status().code() == absl::StatusCode::kNotFound) {
    DISTRO_RETURN_IF_ERROR(WriteFileAtomically(path, absl::StrCat(fresh, "\n")));
    return fresh;
  }
  DISTRO_RETURN_IF_ERROR(kept.status());
  std::string name(absl::StripAsciiWhitespace(*kept));
  DISTRO_RETURN_IF_ERROR(ValidateName(name, path));
  return name;
}

absl::StatusOr<std::optional<StateReader>> StateDir::Load() {
  absl::StatusOr<StateReader> reader = StateReader::Open(StatePath());
  switch (reader.status().code()) {
    case absl::StatusCode::kOk:
      return std::optional<StateReader>(*std::move(reader));
    case absl::StatusCode::kNotFound:
      return std::optional<StateReader>();
    case absl::StatusCode::kDataLoss:
      DISTRO_RETURN_IF_ERROR(SetAside("", reader.status().message()));
      return std::optional<StateReader>();
    case absl::StatusCode::kUnimplemented:
      return absl::InvalidArgumentError(reader.status().message());
    default:
      return reader.status();
  }
}

absl::Status StateDir::SetAside(absl::string_view run_id, absl::string_view reason) {
  const std::string path = StatePath();
  if (run_id.find('/') != absl::string_view::npos) run_id = "";  // no part of a file's name
  const std::string aside =
      absl::StrCat(path, run_id.empty() ? "" : absl::StrCat(".", run_id), ".aside");
  log_->Warning(
      "the worker's state is set aside; the optimizer's state starts at 0",
      {{"reason", reason},
       {"kept_as", aside},
       {"remedy", run_id.empty()
                      ? std::string()
                      : absl::StrCat("give each run a --state_dir of its own; to continue "
                                     "with this state, rename the kept file to ",
                                     path)}});
  std::error_code error;
  std::filesystem::rename(path, aside, error);
  if (error) return ErrnoToStatus(error.value(), "rename", path);
  return SyncFolder(dir_);
}

absl::Status StateDir::Save(const WorkerState& state, absl::Span<const TensorPieces> elements,
                            const Optimizer& optimizer) {
  return WriteStateFile(StatePath(), state, elements, optimizer);
}

}  // namespace distro::worker
