// distro-worker: trains in a run, or continues a text with what a run has trained.
#include <iostream>
#include <string>
#include <vector>

#include "common/base/log.h"
#include "common/client/client_flags.h"
#include "common/client/link_bench.h"
#include "common/process/stop_signal.h"
#include "worker/exit_code.h"
#include "worker/fingerprint_command.h"
#include "worker/flags.h"
#include "worker/generate_command.h"
#include "worker/run_worker.h"
#include "worker/text_floor_command.h"

namespace distro::worker {
namespace {

int Fail(const absl::Status& status) {
  std::cerr << "distro-worker: " << status.message() << "\n";
  return ExitCodeFor(status, 0);
}

// Runs a command that prints a text.
template <typename Options, typename Command>
int Print(const absl::StatusOr<Options>& options, Command command) {
  if (!options.ok()) return Fail(options.status());
  const absl::StatusOr<std::string> text = command(*options);
  if (!text.ok()) return Fail(text.status());
  std::cout << *text << "\n";
  return kExitDone;
}

int Train() {
  const absl::StatusOr<WorkerOptions> options = WorkerOptionsFromFlags();
  if (!options.ok()) return Fail(options.status());
  StopSignal stop;
  Log log(options->log_level);
  return RunWorker(*options, &stop, &log);
}

int BenchLink(const std::string& aggregator) {
  const absl::StatusOr<LinkMeasurement> measured =
      MeasureLink({.channel = ChannelOptionsFromFlags(aggregator)},
                  [](absl::string_view line) { std::cerr << line << "\n"; });
  if (!measured.ok()) return Fail(measured.status());
  std::cout << LinkText(*measured) << "\n";
  return PredictLink(*measured).straggler ? kExitTooSlow : kExitDone;
}

int Main(const std::vector<std::string>& arguments) {
  if (arguments.empty()) return Train();
  if (arguments == std::vector<std::string>{"generate"})
    return Print(GenerateOptionsFromFlags(), GenerateText);
  if (arguments == std::vector<std::string>{"text-floor"})
    return Print(TextFloorOptionsFromFlags(), TextFloorReport);
  if (arguments == std::vector<std::string>{"fingerprint"})
    return Print(absl::StatusOr<FingerprintOptions>(FingerprintOptionsFromFlags()),
                 DataFingerprint);
  if (arguments.size() == 2 && arguments[0] == "bench-link") return BenchLink(arguments[1]);
  return Fail(absl::InvalidArgumentError("unknown command '" + arguments[0] +
                                         "'; --help lists what there is"));
}

}  // namespace
}  // namespace distro::worker

int main(int argc, char** argv) {
  return distro::worker::Main(distro::worker::ParseCommandLine(argc, argv));
}
