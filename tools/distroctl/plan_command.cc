// The flags and the help text of `distroctl plan`.
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/distroctl/plan.h"

namespace distro::tools {

namespace {

absl::StatusOr<std::vector<double>> ParseSeconds(absl::string_view text) {
  std::vector<double> seconds;
  for (const absl::string_view piece : absl::StrSplit(text, ',')) {
    double value = 0;
    if (!absl::SimpleAtod(piece, &value))
      return absl::InvalidArgumentError(absl::StrCat("'", piece, "' is not a number of seconds"));
    seconds.push_back(value);
  }
  return seconds;
}

}  // namespace

Command PlanCommand(const Console* console) {
  struct Given {
    PlanOptions options;
    std::string overlap;  // empty: default
  };
  const auto given = std::make_shared<Given>();
  PlanOptions& o = given->options;
  const auto flag = [](const char* name, FlagValue value, const char* help,
                       std::vector<std::string> choices = {}) {
    return Flag{
        .name = name, .value = std::move(value), .help = help, .choices = std::move(choices)};
  };
  return {
      .name = "plan",
      .summary =
          "What a run needs, from its model, workers and links: memory, bytes, seconds, the "
          "aggregator's machine; nothing is started.",
      .flags = {{.name = "model",
                 .value = &given->options.model,
                 .help = "The model: a folder with config.json, Hugging Face layout, or that file. "
                         "Required.",
                 .takes = Takes::kFile},
                flag("workers", &o.workers, "Workers: machines with links of their own."),
                flag("gpus", &o.gpus, "GPUs of a node."),
                flag("gpu_memory_gb", &o.gpu_memory_gb,
                     "Memory of a GPU, or with deltas of a node, in 10^9 bytes."),
                flag("up_mbps", &o.up_mbps, "Uplink of a node, Mbit/s."),
                flag("down_mbps", &o.down_mbps, "Downlink of a node, Mbit/s."),
                flag("compute_seconds", &o.compute_seconds,
                     "Time that a step's gradient takes on a node."),
                flag("step_seconds", ParsedAs(&o.step_seconds, ParseSeconds, ""),
                     "The same of each worker, separated by commas, where they differ. Replaces "
                     "--compute_seconds by the longest."),
                flag("window_seconds", &o.window_seconds,
                     "round_window of a run of deltas: a worker takes as many steps as fit, at "
                     "most --local_steps; 0: all take --local_steps."),
                flag("rounds", &o.rounds, "Rounds of the run."),
                flag("method", &o.method, "Method of the run (method).", {"deltas", "signs"}),
                flag("local_steps", &o.local_steps,
                     "H: local steps a round, with deltas (local_steps); 0: 5."),
                flag("kept", &o.kept,
                     "K: positions sent per block (kept_per_block); 0: 128 with deltas, 4 with "
                     "signs."),
                flag("kept_votes", &o.kept_votes,
                     "K': positions per block of a result with download = top "
                     "(kept_votes_per_block); 0: all."),
                flag("overlap", &given->overlap,
                     "overlap of the run; not given: 1 with signs, 0 with deltas.", {"0", "1"}),
                flag("micro_batch", &o.micro_batch, "Samples of one forward and backward pass."),
                flag("sequence_length", &o.sequence_length, "Tokens a sample."),
                flag("param_dtype", &o.param_dtype,
                     "Type of the copy used for computing, as of a worker on GPUs.",
                     {"f32", "bf16"}),
                flag("activation_checkpointing", &o.activation_checkpointing,
                     "Every n-th unit recomputes its activations, as of a worker; 0: none."),
                flag("pipeline_micro_batches", &o.micro_batches_of_pipeline,
                     "Micro-batches of the pipeline with which the run is compared.")},
      .help =
          R"(A round is H steps and one exchange. Tables are per step and compare H and K of deltas with signs. GAIN KEPT is the
share of All-Reduce's gain over one worker alone that is kept, SPEED-UP how many times as fast as one alone the run learns
on these links. Both were measured with a small model, 3 and 8 workers and muon_momentum 0.9 (docs/learning.md); other
numbers of workers up to 8 are estimated from them. Formulas and sources: docs/tools.md, "plan". Results have the largest size that they can have; where workers agree they are smaller.
Memory is what a worker plans at its start for the rank that needs most. A strategy fits if 1 GB is left for CUDA and NCCL;
if none fits, the exit code is 5. What the aggregator and the archiver need follows from measurements (docs/performance.md,
"Aggregator under load"); --output helm writes it as values of the chart. distroctl bench-link measures the link itself.

Example:
  distroctl plan --model examples/llama_1b2 --workers 8 --gpu_memory_gb 128 --up_mbps 10 --down_mbps 100
  distroctl plan --model examples/llama_1b2 --workers 3 --step_seconds 4,8,32 --local_steps 60 --window_seconds 240
  distroctl plan --model examples/llama_1b2 --workers 32 --output helm > sizes.yaml
  distroctl plan --model examples/llama_1b2 --method signs --workers 32 --gpus 8 --gpu_memory_gb 80 --kept_votes 32)",
      .run = [given, console]() -> absl::StatusOr<int> {
        if (!given->overlap.empty()) given->options.overlap = given->overlap == "1";
        return console->Show(MakePlan(given->options));
      }};
}

}  // namespace distro::tools
