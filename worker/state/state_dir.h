// The folder of a worker's own state (docs/worker.md, "State"; docs/files.md, "Files of the
// worker"). One process at a time.
//
// Not thread-safe: the training thread owns it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "worker/state/state_file.h"

namespace distro::worker {

class StateDir {
 public:
  // Creates and locks the folder. `log` is borrowed. InvalidArgument: another worker uses it.
  static absl::StatusOr<std::unique_ptr<StateDir>> Open(const std::string& dir, Log* log);

  const std::string& path() const { return dir_; }

  // The name of a worker without a configured one: the stored name, or `fresh`, which is then
  // stored. InvalidArgument: the stored text is not a name.
  absl::StatusOr<std::string> KeepName(const std::string& fresh);

  // The stored state; nullopt: there is none, or it was damaged and has been set aside.
  // InvalidArgument: it is of a newer version.
  absl::StatusOr<std::optional<StateReader>> Load();

  // Renames the state, so that it is neither used again nor lost; the log says how to continue with
  // it. Replaces an older one of the same run that was set aside. `run_id` is empty for a damaged
  // state.
  absl::Status SetAside(absl::string_view run_id, absl::string_view reason);

  // As WriteStateFile.
  absl::Status Save(const WorkerState& state, absl::Span<const TensorPieces> elements,
                    const Optimizer& optimizer);

 private:
  StateDir(std::string dir, FolderLock lock, Log* log)
      : dir_(std::move(dir)), lock_(std::move(lock)), log_(log) {}
  std::string StatePath() const;

  const std::string dir_;
  const FolderLock lock_;
  Log* const log_;
};

}  // namespace distro::worker
