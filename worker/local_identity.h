// The name of a worker process, and the folder of its state. Determined before it connects.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/base/log.h"
#include "worker/options.h"
#include "worker/state/state_dir.h"

namespace distro::worker {

struct LocalIdentity {
  std::string name;
  std::unique_ptr<StateDir> state;  // nullptr: no state is stored
};

// The name is the option's, else the one stored in the folder, else a new one from the host's name.
// Opens the folder, if one is given. The statuses of StateDir, after "--state_dir". `log` is
// borrowed.
absl::StatusOr<LocalIdentity> OpenLocalIdentity(const WorkerOptions& options, Log* log);

}  // namespace distro::worker
