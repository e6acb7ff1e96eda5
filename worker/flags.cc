#include "worker/flags.h"

#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/client/options/client_flags.h"
#include "common/client/probe/connection_fault.h"
#include "worker/commands.h"
#include "worker/exit_code.h"

namespace distro::worker {
namespace {

absl::StatusOr<int> ParseMicroBatch(absl::string_view text) {
  int samples = 0;
  if (text == "auto") return kAutoMicroBatch;
  if (absl::SimpleAtoi(text, &samples) && samples >= 0) return samples;
  return absl::InvalidArgumentError(
      absl::StrCat("'", text, "' is neither auto nor a number of samples"));
}

absl::StatusOr<std::optional<FloatType>> ParseParamDtype(absl::string_view text) {
  return ParseFloatType(text);
}

std::vector<Flag> Flags(WorkerOptions* o) {
  FsdpOptions* const fsdp = &o->node.fsdp;
  return {
      {.name = "aggregator",
       .value = &o->channel.aggregator,
       .help = "Address of the aggregator, host:port. Required without --invite."},
      {.name = "data",
       .value = &o->data,
       .help = "Text (UTF-8) or token files: one, several with commas between them, a pattern in "
               "quotes, or the index that distro-data wrote; the same tokens on every worker of a "
               "run (docs/data.md). Required.",
       .takes = Takes::kFile},
      DataFormatFlag(&o->data_format),
      {.name = "public_data",
       .value = &o->public_data,
       .help = "Text or token file, by its name, that all workers of a run of local data hold and "
               "are evaluated on; --data is then this worker's own and stays here "
               "(docs/local_data.md).",
       .takes = Takes::kFile},
      {.name = "name",
       .value = &o->name,
       .help = "Name in the run, [a-z0-9-]{1,63}. Default: the name stored in --state_dir, else "
               "the host's name and a random suffix."},
      {.name = "threads",
       .value = &o->threads,
       .help = "Torch threads of a rank. Results are bit-reproducible with 1 only."},
      {.name = "micro_batch_samples",
       .value = ParsedAs(&o->micro_batch_samples, ParseMicroBatch, "0"),
       .help = "Samples of one forward and backward pass, a divisor of the run's "
               "samples_per_worker; 0: all at once, by one rank; auto: the largest that fits the "
               "memory and gives every rank some. Smaller values need less memory and can be "
               "shared by several ranks; the samples that are read are the same."},
      {.name = "hold_back",
       .value = &o->hold_back,
       .help = "Delay added to every gradient, such as 200ms: to try a run with a slower machine."},
      {.name = "stateless",
       .value = &o->stateless,
       .help = "Begin every round without state of earlier rounds, and keep none: for a worker "
               "that takes part in single rounds. Runs of deltas only."},
      {.name = "updates",
       .value = &o->updates,
       .help = "Leave after this many updates of its own; 0: stay until the run is done."},
      {.name = "device",
       .value = ParsedAs(&o->node.device, ParseDeviceKind, Name(o->node.device)),
       .help = "Device of this node: cpu, or cuda with one rank per GPU, in programs built for it.",
       .choices = {"cpu", "cuda"}},
      {.name = "ranks",
       .value = &o->node.ranks,
       .help =
           "Ranks of this node, up to 32 for each processor: threads that share its micro-batches "
           "(docs/fsdp.md). 0: one; with --device cuda one per GPU, which is also the maximum."},
      {.name = "sharding",
       .value = ParsedAs(&fsdp->sharding, ParseSharding, Name(fsdp->sharding)),
       .help = "What is divided among the ranks: no_shard nothing, shard_optimizer the optimizer's "
               "state, "
               "shard_grad_op also the gradients, full_shard also the parameters.",
       .choices = {"no_shard", "shard_optimizer", "shard_grad_op", "full_shard"}},
      {.name = "param_dtype",
       .value = ParsedAs(&o->param_dtype, ParseParamDtype, ""),
       .help = "Type of the copy used for computing: f32, or bf16, which needs half its memory. "
               "The trained parameters stay f32. Default: bf16 with --device cuda, f32 with cpu.",
       .choices = {"f32", "bf16"}},
      {.name = "reduce_dtype",
       .value = ParsedAs(&fsdp->reduce_dtype, ParseFloatType, Name(fsdp->reduce_dtype)),
       .help = "Type of gradients sent between ranks: f32, or bf16, which is half the traffic.",
       .choices = {"f32", "bf16"}},
      {.name = "activation_checkpointing",
       .value = &fsdp->checkpoint_every,
       .help = "Every n-th unit (embedding, layers, head) recomputes its activations instead of "
               "keeping them; 0: none, 1: every unit."},
      {.name = "prefetch_units",
       .value = &fsdp->prefetch_units,
       .help = "With full_shard: units gathered ahead of the one being computed; each costs its "
               "memory."},
      {.name = "reduce_every_micro_batch",
       .value = &fsdp->reduce_every_micro_batch,
       .help =
           "Ranks add their gradients after every micro-batch, which gives the same bits as one "
           "rank; false: once per step, with less traffic, for no_shard and shard_optimizer."},
      {.name = "cpu_offload",
       .value = &fsdp->cpu_offload,
       .help =
           "With --device cuda: parameters and the optimizer's state stay in the host's memory, "
           "and its CPU "
           "compresses and applies. Less GPU memory; every step moves parameters and gradients."},
      {.name = "rank_timeout",
       .value = &o->node.rank_timeout,
       .help = "How long ranks wait for each other before the worker ends with exit code 10."},
      {.name = "memory_limit_bytes",
       .value = ByteSize{&o->node.memory_limit_bytes},
       .help = "Memory that a rank may use in the plan made at the start; 0: its share of the "
               "device's memory."},
      {.name = "checkpoint_dir",
       .value = &o->checkpoint_dir,
       .help = "Write the model here at the end, in the Hugging Face layout.",
       .takes = Takes::kFolder},
      {.name = "checkpoint_interval_rounds",
       .value = &o->checkpoint_interval_rounds,
       .help = "Also write checkpoint_dir/round-N every this many rounds; 0: do not."},
      {.name = "keep",
       .value = &o->keep,
       .help = "Number of newest folders round-N to keep in --checkpoint_dir; 0: all."},
      {.name = "state_dir",
       .value = &o->state_dir,
       .help =
           "Store the worker's own state (optimizer, name) here, from which a restarted process "
           "continues.",
       .takes = Takes::kFolder},
      {.name = "state_interval_rounds",
       .value = &o->state_interval_rounds,
       .help =
           "Rounds between saves of the state; it is also saved at the end. 0: only at the end."},
      {.name = "sample_prompt",
       .value = &o->sample.prompt,
       .help =
           "Text that the model continues every --sample_interval_rounds; written to the log and "
           "to samples.jsonl in --state_dir."},
      {.name = "sample_interval_rounds",
       .value = &o->sample.interval_rounds,
       .help = "Rounds between samples; 0: one at the end. Training waits while one is made."},
      {.name = "sample_tokens",
       .value = &o->sample.tokens,
       .help = "Tokens that a sample adds to the prompt."},
      TokenizerCommandFlag(&o->sample.tokenizer_command),
      {.name = "summary",
       .value = &o->summary,
       .help = "Write the closing summary to this file as JSON.",
       .takes = Takes::kFile},
      {.name = "metrics_file",
       .value = &o->metrics_file,
       .help = "File to which one JSON line per round is appended. Default: metrics.jsonl in "
               "--state_dir, if that is given.",
       .takes = Takes::kFile},
      ConnectTimeoutFlag(&o->connect_timeout),
      MirrorsFlag(&o->mirrors),
      {.name = "http",
       .value = &o->http,
       .help = "Address of /metrics, /healthz and /readyz; port 0: a free one, logged."},
      LogLevelFlag(&o->log_level)};
}

std::vector<ExitCodeHelp> ExitCodes() {
  std::vector<ExitCodeHelp> codes = {
      {kExitDone, "the run is done"},
      {kExitFailed, "failure, such as a full disk; the last log line says which"},
      {kExitUsage, "a flag, file or configuration must be fixed"},
      {kExitRefused, "refused by the aggregator"},
      {kExitReplaced, "replaced by a newer process of the same name"},
      {kExitDiverged, "the parameters diverged from the run's log and a resync did not help"},
      {kExitVersion, "the aggregator or the run has another version"},
      {kExitQuarantined, "in quarantine: the aggregator accepts nothing from this name"},
      {kExitCredentials, "credentials refused"},
      {kExitTooSlow, "the link is too slow for the run's results"},
      {kExitRank, "a rank of the node failed"},
      {kExitNotFinite, "no step was finite, for too many rounds"}};
  for (const FaultRule& rule : FaultRules())
    if (rule.exit_code != 0) codes.push_back({rule.exit_code, std::string(rule.summary)});
  codes.push_back({kExitHungUp, "SIGHUP"});
  codes.push_back({kExitInterrupted, "SIGINT"});
  codes.push_back({kExitTerminated, "SIGTERM"});
  codes.push_back({kExitCpuTime, "SIGXCPU"});
  return codes;
}

constexpr char kHelp[] = R"(Examples:
  distro-worker --aggregator HOST:PORT --data FILE --name NAME --ca FILE --token_file FILE
      Joins the run that the aggregator holds, trains until it is done, prints a summary. Everything but the
      data comes from the aggregator. SIGINT, SIGTERM or SIGHUP leaves the run; a second SIGINT or SIGTERM
      ends at once.

  distro-worker --invite w2.invite --data FILE --state_dir DIR
      The same with a file from the operator (`distroctl invite w2`), which contains address, name, CA and token.)";

}  // namespace

Program WorkerProgram(WorkerOptions* options, std::function<absl::StatusOr<int>()> run) {
  std::vector<Command> commands = Commands();
  commands.push_back({.flags = WithClientFlags(Flags(options), &options->channel),
                      .run = [options, run = std::move(run)]() -> absl::StatusOr<int> {
                        DISTRO_RETURN_IF_ERROR(options->TakeInvite(absl::Now()));
                        DISTRO_RETURN_IF_ERROR(options->Validate());
                        return run();
                      }});
  return {
      .name = "distro-worker",
      .summary = "trains a model together with other workers, through an aggregator.",
      .commands = std::move(commands),
      .help = kHelp,
      .exit_codes = ExitCodes(),
      .exit_code = [](const absl::Status& status) { return ExitCodeFor(status, /*signal=*/0); }};
}

}  // namespace distro::worker
