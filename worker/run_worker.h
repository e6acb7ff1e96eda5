// A worker process from its options to its exit code: opens the data, connects, trains, reports.
// Blocking.
#pragma once

#include "common/base/log.h"
#include "common/base/process/stop_signal.h"
#include "worker/exit_code.h"
#include "worker/options.h"

namespace distro::worker {

// Requires validated options. Progress and the summary go to standard output; a failure is logged
// with its remedy.
ExitCode RunWorker(const WorkerOptions& options, StopSignal* stop, Log* log);

}  // namespace distro::worker
