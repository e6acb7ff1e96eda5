// How a run learns: W workers in one process, or the same run with AdamW or SGD and averaged gradients. Prints the held-out loss at
// every evaluation, and writes the curve as CSV. study.py runs many.
//
//   convergence --run run.json --model DIR --data FILE --workers 8
//   convergence ... --method adamw --csv adamw.csv
//   convergence ... --overlap 1 --seed 2 --link_delay 300ms
//   convergence ... --workers 4 --miss 0,0,0.5,0.9 --first_round 0,0,0,100
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "bench/convergence/baseline.h"
#include "bench/convergence/curve.h"
#include "bench/convergence/virtual_workers.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/run/run_config.h"
#include "common/simulation/local_run.h"
#include "worker/data/token_file.h"
#include "worker/model/model.h"

ABSL_FLAG(std::string, run, "", "run.json; start_workers is replaced by --workers.");
ABSL_FLAG(std::string, model, "", "Checkpoint folder with the initial model.");
ABSL_FLAG(std::string, data, "", "Text or token file.");
ABSL_FLAG(int, workers, 1, "Workers.");
ABSL_FLAG(std::string, csv, "", "File that receives the curve; empty: none.");
ABSL_FLAG(std::string, method, "distro",
          "distro, or with the workers' gradients averaged: adamw, sgd (with the run's beta as "
          "momentum).");
ABSL_FLAG(double, adam_beta1, 0.9, "Decay of AdamW's first moment.");
ABSL_FLAG(double, adam_beta2, 0.95, "Decay of AdamW's second moment.");
ABSL_FLAG(int, overlap, -1, "Replaces the run's; -1: as the run has it.");
ABSL_FLAG(int64_t, seed, -1, "Replaces the run's; -1: as the run has it.");
ABSL_FLAG(int, micro_batch_samples, 0,
          "Samples of one forward and backward pass; 0: all of a round's.");
ABSL_FLAG(absl::Duration, link_delay, absl::ZeroDuration(),
          "A result arrives this long after the upload.");
ABSL_FLAG(std::string, miss, "0",
          "Probability that an update misses its round; one number for all workers, or one each.");
ABSL_FLAG(std::string, first_round, "0",
          "Updates of earlier rounds are missed; one number for all workers, or one each.");
ABSL_FLAG(bool, feedback_of_missed, false,
          "Subtract missed updates from the momentum, too, as DeMo does.");
ABSL_FLAG(
    std::string, record_votes, "",
    "File that receives the votes of the last round (bench/wire/plain_votes.h); empty: none.");
ABSL_FLAG(std::string, record_updates, "",
          "Folder that receives what each worker voted in the last round; empty: none.");
ABSL_FLAG(bool, one_vote, false, "Apply the sign of each sum of votes in the place of the sum.");

namespace distro::worker {
namespace {

// One value a worker out of "x" or "x,y,z".
template <typename Number, typename Parse>
absl::StatusOr<std::vector<Number>> PerWorker(absl::string_view flag, const std::string& text,
                                              int workers, Parse parse) {
  std::vector<Number> values;
  for (const absl::string_view part : absl::StrSplit(text, ',')) {
    Number value{};
    if (!parse(part, &value) || value < 0)
      return absl::InvalidArgumentError(absl::StrCat("--", flag, ": '", part, "' is no number"));
    values.push_back(value);
  }
  if (values.size() == 1) values.resize(workers, values[0]);
  if (values.size() == static_cast<size_t>(workers)) return values;
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, ": ", values.size(), " values for ", workers, " workers"));
}

absl::StatusOr<std::vector<LabLink>> Links(const v1::RunConfig& config) {
  const int workers = absl::GetFlag(FLAGS_workers);
  DISTRO_ASSIGN_OR_RETURN(
      const std::vector<double> miss,
      PerWorker<double>("miss", absl::GetFlag(FLAGS_miss), workers, [](auto text, double* value) {
        return absl::SimpleAtod(text, value) && *value <= 1;
      }));
  DISTRO_ASSIGN_OR_RETURN(
      const std::vector<int64_t> first_round,
      PerWorker<int64_t>("first_round", absl::GetFlag(FLAGS_first_round), workers,
                         [](auto text, int64_t* value) { return absl::SimpleAtoi(text, value); }));
  std::vector<LabLink> links;
  for (int i = 0; i < workers; ++i) {
    links.push_back({.delay = absl::GetFlag(FLAGS_link_delay),
                     .miss = miss[i],
                     .first_round = static_cast<uint64_t>(first_round[i]),
                     .seed = config.seed(),
                     .feedback_of_missed = absl::GetFlag(FLAGS_feedback_of_missed),
                     .one_vote = absl::GetFlag(FLAGS_one_vote),
                     .record_updates = absl::GetFlag(FLAGS_record_updates),
                     .record_round = config.rounds() - 1});
  }
  links[0].record_votes = absl::GetFlag(FLAGS_record_votes);
  return links;
}

absl::StatusOr<v1::RunConfig> Config() {
  DISTRO_ASSIGN_OR_RETURN(const std::string json, ReadFile(absl::GetFlag(FLAGS_run)));
  DISTRO_ASSIGN_OR_RETURN(v1::RunConfig config, ParseRunConfig(json));
  if (absl::GetFlag(FLAGS_workers) < 1)
    return absl::InvalidArgumentError("--workers: must be 1 or more");
  config.set_start_workers(absl::GetFlag(FLAGS_workers));
  if (absl::GetFlag(FLAGS_overlap) >= 0) config.set_overlap(absl::GetFlag(FLAGS_overlap));
  if (absl::GetFlag(FLAGS_seed) >= 0) config.set_seed(absl::GetFlag(FLAGS_seed));
  return CompleteRunConfig(config);
}

absl::StatusOr<Curve> Train(const v1::RunConfig& config, const std::string& folder) {
  DISTRO_ASSIGN_OR_RETURN(const TokenSource tokens,
                          OpenTokens(absl::GetFlag(FLAGS_data), TokenFormat::kAuto));
  DISTRO_ASSIGN_OR_RETURN(LocalRun run, MakeLocalRun(config, absl::GetFlag(FLAGS_model),
                                                     folder + "/initial.safetensors"));
  const std::string method = absl::GetFlag(FLAGS_method);
  if (method == "distro") {
    DISTRO_ASSIGN_OR_RETURN(std::vector<LabLink> links, Links(config));
    return RunVirtualWorkers(std::move(run), tokens,
                             {.links = std::move(links),
                              .micro_batch_samples = absl::GetFlag(FLAGS_micro_batch_samples)},
                             folder);
  }
  if (method != "adamw" && method != "sgd")
    return absl::InvalidArgumentError("--method: is one of distro, adamw, sgd");
  SetTorchThreads(1);
  return RunBaseline(run, tokens,
                     {.method = method == "sgd" ? BaselineMethod::kSgd : BaselineMethod::kAdamW,
                      .beta1 = absl::GetFlag(FLAGS_adam_beta1),
                      .beta2 = absl::GetFlag(FLAGS_adam_beta2)});
}

absl::Status Main() {
  DISTRO_ASSIGN_OR_RETURN(const v1::RunConfig config, Config());
  std::string folder = (std::filesystem::temp_directory_path() / "convergence-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr)
    return absl::InternalError(absl::StrCat("cannot create ", folder));
  const auto remove = absl::MakeCleanup([&folder] { std::filesystem::remove_all(folder); });
  DISTRO_ASSIGN_OR_RETURN(const Curve curve, Train(config, folder));
  const std::string csv = absl::GetFlag(FLAGS_csv);
  return csv.empty() ? absl::OkStatus() : curve.WriteCsv(csv);
}

}  // namespace
}  // namespace distro::worker

int main(int argc, char** argv) {
  absl::ParseCommandLine(argc, argv);
  const absl::Status status = distro::worker::Main();
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
