// Trains W workers in one process with signs or deltas, or the same run with AdamW, Muon or SGD on
// averaged gradients. Prints the held-out loss at every evaluation, and writes the curve as CSV.
// study.py starts many runs.
//
//   convergence --run run.json --model DIR --data FILE --workers 8
//   convergence ... --method adamw --csv adamw.csv
//   convergence ... --method deltas --deltas '{"window": 5, "k": 32}' --threads 2
//   convergence ... --overlap 1 --seed 2 --link_delay 300ms
//   convergence ... --workers 4 --miss 0,0,0.5,0.9 --first_round 0,0,0,100
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "bench/convergence/baseline.h"
#include "bench/convergence/curve.h"
#include "bench/convergence/deltas.h"
#include "bench/convergence/deltas_settings.h"
#include "bench/convergence/virtual_workers.h"
#include "bench/local/local_aggregator.h"
#include "common/base/file.h"
#include "common/base/process/command_line.h"
#include "common/base/status_macros.h"
#include "common/run/run_config.h"
#include "worker/data/token_file.h"
#include "worker/model/model.h"

namespace distro::worker {
namespace {

struct Options {
  std::string run;
  std::string model;
  std::string data;
  int workers = 1;
  std::string csv;
  std::string method = "distro";
  std::string deltas = "{}";
  int threads = 1;
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.95;
  int overlap = -1;
  int64_t seed = -1;
  int micro_batch_samples = 0;
  absl::Duration link_delay = absl::ZeroDuration();
  std::string miss = "0";
  std::string first_round = "0";
  std::string attack;
  bool feedback_of_missed = false;
  std::string record_votes;
  std::string record_updates;
  bool one_vote = false;
};

std::vector<Flag> Flags(Options* o) {
  return {
      {.name = "run",
       .value = &o->run,
       .help = "run.json; start_workers is replaced by --workers.",
       .takes = Takes::kFile},
      {.name = "model",
       .value = &o->model,
       .help = "Checkpoint folder with the initial model.",
       .takes = Takes::kFolder},
      {.name = "data", .value = &o->data, .help = "Text or token file.", .takes = Takes::kFile},
      {.name = "workers", .value = &o->workers, .help = "Workers."},
      {.name = "csv",
       .value = &o->csv,
       .help = "File that receives the curve; empty: none.",
       .takes = Takes::kFile},
      {.name = "method",
       .value = &o->method,
       .help = "distro (signs), deltas, or with the workers' gradients averaged: adamw, muon (the "
               "run's "
               "beta is its mu), sgd (the run's beta is its momentum)."},
      {.name = "deltas",
       .value = &o->deltas,
       .help = "JSON with settings of the deltas method (bench/convergence/deltas_settings.h)."},
      {.name = "threads",
       .value = &o->threads,
       .help = "Threads that the workers of deltas share."},
      {.name = "adam_beta1", .value = &o->adam_beta1, .help = "Decay of AdamW's first moment."},
      {.name = "adam_beta2", .value = &o->adam_beta2, .help = "Decay of AdamW's second moment."},
      {.name = "overlap",
       .value = &o->overlap,
       .help = "Replaces the run's; -1: as the run has it."},
      {.name = "seed", .value = &o->seed, .help = "Replaces the run's; -1: as the run has it."},
      {.name = "micro_batch_samples",
       .value = &o->micro_batch_samples,
       .help = "Samples of one forward and backward pass; 0: all of a round's."},
      {.name = "link_delay",
       .value = &o->link_delay,
       .help = "A result arrives this long after the upload."},
      {.name = "miss",
       .value = &o->miss,
       .help =
           "Probability that an update misses its round; one number for all workers, or one each."},
      {.name = "first_round",
       .value = &o->first_round,
       .help = "Updates of earlier rounds are missed; one number for all workers, or one each."},
      {.name = "attack",
       .value = &o->attack,
       .help =
           "Signs: the last worker is hostile and sends inverted or random signs. Deltas have a "
           "setting for it.",
       .choices = {"inverted", "random"}},
      {.name = "feedback_of_missed",
       .value = &o->feedback_of_missed,
       .help = "Subtract missed updates from the momentum, too, as DeMo does."},
      {.name = "record_votes",
       .value = &o->record_votes,
       .help = "File that receives the votes of the last round (bench/wire/plain_votes.h); empty: "
               "none.",
       .takes = Takes::kFile},
      {.name = "record_updates",
       .value = &o->record_updates,
       .help = "Folder that receives what each worker voted in the last round; empty: none.",
       .takes = Takes::kFolder},
      {.name = "one_vote",
       .value = &o->one_vote,
       .help = "Apply the sign of each sum of votes in the place of the sum."}};
}

// One value per worker, from "x" or "x,y,z".
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

absl::StatusOr<std::vector<LabLink>> Links(const Options& options, const v1::RunConfig& config) {
  const int workers = options.workers;
  DISTRO_ASSIGN_OR_RETURN(
      const std::vector<double> miss,
      PerWorker<double>("miss", options.miss, workers, [](auto text, double* value) {
        return absl::SimpleAtod(text, value) && *value <= 1;
      }));
  DISTRO_ASSIGN_OR_RETURN(
      const std::vector<int64_t> first_round,
      PerWorker<int64_t>("first_round", options.first_round, workers,
                         [](auto text, int64_t* value) { return absl::SimpleAtoi(text, value); }));
  std::vector<LabLink> links;
  for (int i = 0; i < workers; ++i) {
    links.push_back({.delay = options.link_delay,
                     .miss = miss[i],
                     .first_round = static_cast<uint64_t>(first_round[i]),
                     .seed = config.seed(),
                     .feedback_of_missed = options.feedback_of_missed,
                     .one_vote = options.one_vote,
                     .record_updates = options.record_updates,
                     .record_round = config.rounds() - 1});
  }
  links[0].record_votes = options.record_votes;
  links.back().attack = options.attack;
  return links;
}

absl::StatusOr<v1::RunConfig> Config(const Options& options) {
  DISTRO_ASSIGN_OR_RETURN(const std::string json, ReadFile(options.run));
  DISTRO_ASSIGN_OR_RETURN(v1::RunConfig config, ParseRunConfig(json));
  if (options.workers < 1) return absl::InvalidArgumentError("--workers: must be 1 or more");
  config.set_start_workers(options.workers);
  if (options.overlap >= 0) config.set_overlap(options.overlap);
  if (options.seed >= 0) config.set_seed(options.seed);
  return CompleteRunConfig(config);
}

absl::StatusOr<BaselineMethod> BaselineOf(const std::string& method) {
  if (method == "adamw") return BaselineMethod::kAdamW;
  if (method == "muon") return BaselineMethod::kMuon;
  if (method == "sgd") return BaselineMethod::kSgd;
  return absl::InvalidArgumentError("--method: is one of distro, deltas, adamw, muon, sgd");
}

absl::StatusOr<Curve> TrainWithDeltas(const Options& options, const server::RunIdentity& run,
                                      const TokenSource& tokens) {
  if (options.threads < 1) return absl::InvalidArgumentError("--threads: must be 1 or more");
  DISTRO_ASSIGN_OR_RETURN(const DeltasSettings settings, ParseDeltasSettings(options.deltas));
  DISTRO_ASSIGN_OR_RETURN(DeltasLearned learned, RunDeltas(run, tokens, settings, options.threads));
  for (const auto& [worker, round] : learned.suspected)
    std::cout << "suspected: worker " << worker << " after round " << round << "\n";
  return std::move(learned.curve);
}

absl::StatusOr<Curve> Train(const Options& options, const v1::RunConfig& config,
                            const std::string& folder) {
  DISTRO_ASSIGN_OR_RETURN(const TokenSource tokens, OpenTokens(options.data, TokenFormat::kAuto));
  DISTRO_ASSIGN_OR_RETURN(
      server::RunIdentity run,
      server::MakeLocalRun(config, options.model, folder + "/initial.safetensors"));
  if (options.method == "distro") {
    DISTRO_ASSIGN_OR_RETURN(std::vector<LabLink> links, Links(options, config));
    return RunVirtualWorkers(
        std::move(run), tokens,
        {.links = std::move(links), .micro_batch_samples = options.micro_batch_samples});
  }
  if (options.method == "deltas") return TrainWithDeltas(options, run, tokens);
  DISTRO_ASSIGN_OR_RETURN(const BaselineMethod method, BaselineOf(options.method));
  SetTorchThreads(1);
  return RunBaseline(run, tokens,
                     {.method = method, .beta1 = options.adam_beta1, .beta2 = options.adam_beta2});
}

absl::StatusOr<int> Main(const Options& options) {
  DISTRO_ASSIGN_OR_RETURN(const v1::RunConfig config, Config(options));
  std::string folder = (std::filesystem::temp_directory_path() / "convergence-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr)
    return absl::InternalError(absl::StrCat("cannot create ", folder));
  const auto remove = absl::MakeCleanup([&folder] { std::filesystem::remove_all(folder); });
  DISTRO_ASSIGN_OR_RETURN(const Curve curve, Train(options, config, folder));
  const std::string csv = options.csv;
  if (!csv.empty()) DISTRO_RETURN_IF_ERROR(curve.WriteCsv(csv));
  return 0;
}

}  // namespace
}  // namespace distro::worker

int main(int argc, char** argv) {
  distro::worker::Options options;
  return distro::RunProgram(
      {.name = "convergence",
       .summary =
           "trains W workers in one process and prints the held-out loss at every evaluation.",
       .commands = {{.flags = distro::worker::Flags(&options),
                     .help = R"(Examples:
  convergence --run run.json --model DIR --data FILE --workers 8
  convergence ... --method adamw --csv adamw.csv
  convergence ... --method deltas --deltas '{"window": 5, "k": 32}' --threads 2
  convergence ... --overlap 1 --seed 2 --link_delay 300ms
  convergence ... --workers 4 --miss 0,0,0.5,0.9 --first_round 0,0,0,100)",
                     .run = [&options] { return distro::worker::Main(options); }}}},
      argc, argv);
}
