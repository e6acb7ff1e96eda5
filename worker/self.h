// What a worker process is and keeps: its name and the folder of its state. Decided before it
// connects.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "worker/options.h"
#include "worker/state/state_dir.h"

namespace distro::worker {

struct Self {
  std::string name;
  std::unique_ptr<StateDir> state;  // null: nothing is kept
};

// By the options; a name that nobody gave is the one that the folder keeps, or is made up. The
// statuses of StateDir, after "--state_dir". `log` is borrowed.
absl::StatusOr<Self> MakeSelf(const WorkerOptions& options, Log* log);

}  // namespace distro::worker
