// How a run learns: W workers in one process (LocalExchange), everything else as in a real run. Prints the held-out loss
// after every evaluation and the wall time.
//
//   convergence --run run.json --model DIR --data FILE --workers 3
//   convergence ... --overlap 1 --seed 2 --link_delay 300ms     with an artificially slow link (delayed_exchange.h)
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "bench/delayed_exchange.h"
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/status_macros.h"
#include "common/run/run_config.h"
#include "worker/data/token_file.h"
#include "worker/exchange/local_aggregator.h"
#include "worker/exchange/local_exchange.h"
#include "worker/exchange/local_run.h"
#include "worker/model/model.h"
#include "worker/train/training_run.h"

ABSL_FLAG(std::string, run, "", "run.json; start_workers is replaced by --workers.");
ABSL_FLAG(std::string, model, "", "Checkpoint folder with the initial model.");
ABSL_FLAG(std::string, data, "", "Text or token file.");
ABSL_FLAG(int, workers, 1, "Workers.");
ABSL_FLAG(int, overlap, -1, "Replaces the run's; -1: as the run has it.");
ABSL_FLAG(int64_t, seed, -1, "Replaces the run's; -1: as the run has it.");
ABSL_FLAG(absl::Duration, link_delay, absl::ZeroDuration(),
          "A result arrives this long after the upload.");
ABSL_FLAG(int, micro_batch_samples, 0,
          "Samples of one forward and backward pass; 0: all of a round's.");

namespace distro::worker {
namespace {

// Prints a line whenever the first worker has evaluated anew.
class CurvePrinter {
 public:
  void operator()(const TrainSummary& summary) {
    if (!summary.last_evaluation_loss.has_value() || summary.last_evaluation_loss == shown_) return;
    shown_ = summary.last_evaluation_loss;
    absl::PrintF("round %6d  tokens %10d  held-out %.4f  %.1f s\n", summary.next_round,
                 summary.tokens, *shown_, absl::ToDoubleSeconds(summary.wall_time));
    std::fflush(stdout);
  }

 private:
  std::optional<double> shown_;
};

absl::Status TrainOne(int index, const std::string& folder, const TokenSource& tokens,
                      LocalAggregator* aggregator) {
  SetTorchThreads(1);
  Log log(LogLevel::kWarning);
  PhaseClock phases(Clock::Real());
  LocalExchange local(aggregator);
  DelayedExchange exchange(&local, absl::GetFlag(FLAGS_link_delay));
  const std::string name = absl::StrFormat("w%03d", index);
  const std::string scratch = absl::StrCat(folder, "/", name);
  DISTRO_RETURN_IF_ERROR(CreateFolders(scratch));
  Trainer::Observer observer = [](const TrainSummary&) {};
  if (index == 0) observer = CurvePrinter();
  TrainerOptions options = {.worker = name,
                            .incarnation = static_cast<uint64_t>(index) + 1,
                            .micro_batch_samples = absl::GetFlag(FLAGS_micro_batch_samples),
                            .checkpoint_dir = ""};
  DISTRO_ASSIGN_OR_RETURN(
      const std::unique_ptr<TrainingRun> run,
      TrainingRun::Begin(options, scratch,
                         {.tokens = &tokens, .exchange = &exchange, .phases = &phases, .log = &log},
                         observer));
  const absl::Status status = run->Train();
  exchange.Leave("done");
  if (index == 0) std::cout << SummaryText(run->summary());
  return status;
}

absl::Status Main(const std::string& folder) {
  const int workers = absl::GetFlag(FLAGS_workers);
  DISTRO_ASSIGN_OR_RETURN(const std::string json, ReadFile(absl::GetFlag(FLAGS_run)));
  DISTRO_ASSIGN_OR_RETURN(v1::RunConfig config, ParseRunConfig(json));
  config.set_start_workers(workers);
  if (absl::GetFlag(FLAGS_overlap) >= 0) config.set_overlap(absl::GetFlag(FLAGS_overlap));
  if (absl::GetFlag(FLAGS_seed) >= 0) config.set_seed(absl::GetFlag(FLAGS_seed));
  DISTRO_ASSIGN_OR_RETURN(config, CompleteRunConfig(config));
  DISTRO_ASSIGN_OR_RETURN(const TokenSource tokens,
                          OpenTokens(absl::GetFlag(FLAGS_data), TokenFormat::kAuto));
  DISTRO_ASSIGN_OR_RETURN(LocalRun run, MakeLocalRun(config, absl::GetFlag(FLAGS_model),
                                                     folder + "/initial.safetensors"));
  LocalAggregator aggregator(std::move(run));
  std::vector<absl::Status> statuses(workers);
  std::vector<std::thread> threads;
  for (int i = 0; i < workers; ++i) {
    threads.emplace_back([&, i] { statuses[i] = TrainOne(i, folder, tokens, &aggregator); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) DISTRO_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace
}  // namespace distro::worker

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  std::string folder = (std::filesystem::temp_directory_path() / "convergence-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    std::cerr << "cannot create " << folder << "\n";
    return 1;
  }
  const absl::Status status = distro::worker::Main(folder);
  std::filesystem::remove_all(folder);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
