// distro-worker: see flags.cc, or --help.
#include "common/base/log.h"
#include "common/base/process/host_memory.h"
#include "common/base/process/stop_signal.h"
#include "worker/flags.h"
#include "worker/run_worker.h"

int main(int argc, char** argv) {
  distro::worker::WorkerOptions options;
  const auto train = [&options]() -> absl::StatusOr<int> {
    distro::KeepFreedMemory();
    distro::StopSignal stop;
    distro::Log log(options.log_level);
    return distro::worker::RunWorker(options, &stop, &log);
  };
  return distro::RunProgram(distro::worker::WorkerProgram(&options, train), argc, argv);
}
