#include "worker/flags.h"

#include <utility>

#include "absl/flags/flag.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/client/client_flags.h"
#include "common/process/command_line.h"

ABSL_FLAG(std::string, aggregator, "", "Address of the aggregator, host:port. Required.");
ABSL_FLAG(
    std::string, data, "",
    "Text (UTF-8) or token file; the same on every worker of a run (docs/data.md). Required.");
ABSL_FLAG(std::string, data_format, "auto",
          "Of --data: text, llmc, uint16, uint32, or auto: by the file's name (docs/data.md).");
ABSL_FLAG(std::string, name, "",
          "Name in the run, [a-z0-9-]{1,63}. Default: the name that --state_dir keeps, else the "
          "host's name and a random "
          "suffix.");
ABSL_FLAG(int, threads, 1, "Torch threads of a rank. Results are bit-reproducible with 1 only.");
ABSL_FLAG(int, micro_batch_samples, 0,
          "Samples of one forward and backward pass, a divisor of the run's samples_per_worker; 0: "
          "all at once, by one rank. Smaller values need less memory and give several ranks "
          "something to do; the samples that are read are the same.");
ABSL_FLAG(
    std::string, device, "cpu",
    "What this node computes on: cpu, or cuda, one rank a GPU, in programs that were built for "
    "it.");
ABSL_FLAG(int, ranks, 0,
          "Ranks of this node, up to 1024: threads that each compute every so many micro-batches "
          "(docs/fsdp.md). 0: one; with --device cuda one a GPU, which are also the most there can "
          "be.");
ABSL_FLAG(std::string, sharding, "no_shard",
          "What each rank keeps a part of only: no_shard nothing, shard_optimizer the momentum, "
          "shard_grad_op gradients too, full_shard parameters too.");
ABSL_FLAG(std::string, param_dtype, "f32",
          "Of the copy that computes: f32, or bf16, which needs half its memory. What is trained "
          "stays f32.");
ABSL_FLAG(std::string, reduce_dtype, "f32",
          "In which gradients travel between ranks: f32, or bf16, which is half the traffic.");
ABSL_FLAG(int, activation_checkpointing, 0,
          "Every how many units (embedding, layers, head) activations are computed again instead "
          "of kept; 0: none, 1: every unit.");
ABSL_FLAG(int, prefetch_units, 1,
          "full_shard: units that are gathered ahead of the one that computes; each costs its "
          "memory.");
ABSL_FLAG(bool, reduce_every_micro_batch, true,
          "Ranks add their gradients after every micro-batch, which gives the bits of one rank; "
          "false: once a step, less traffic, with no_shard and shard_optimizer.");
ABSL_FLAG(bool, cpu_offload, false,
          "With --device cuda: parameters and momentum stay in the host's memory, and its CPU "
          "compresses and applies. Less GPU memory; every step moves parameters and gradients.");
ABSL_FLAG(absl::Duration, rank_timeout, absl::Minutes(30),
          "How long ranks wait for each other before the worker ends with exit code 10.");
ABSL_FLAG(uint64_t, memory_limit_bytes, 0,
          "Memory that a rank may use, by the plan that is made at the start; 0: its share of what "
          "the device has.");
ABSL_FLAG(std::string, checkpoint_dir, "",
          "Write the model here at the end, in the Hugging Face layout.");
ABSL_FLAG(uint64_t, checkpoint_interval_rounds, 0,
          "Also into checkpoint_dir/round-N every so many rounds; 0: not.");
ABSL_FLAG(
    std::string, state_dir, "",
    "Keep the worker's own state (momentum, name) here, with which a restarted process goes on.");
ABSL_FLAG(uint64_t, state_interval_rounds, 100,
          "Save it after every so many rounds, and at the end; 0: at the end only.");
ABSL_FLAG(std::string, summary, "", "Write the closing summary to this file as JSON.");
ABSL_FLAG(std::string, http, "127.0.0.1:0",
          "Address of /metrics, /healthz and /readyz; port 0: a free one, logged.");
ABSL_FLAG(std::string, log_level, "info", "debug, info, warning or error.");

ABSL_FLAG(std::string, model, "", "generate: checkpoint folder.");
ABSL_FLAG(std::string, prompt, "", "generate: text to continue.");
ABSL_FLAG(int, tokens, 200, "generate: tokens to add.");
ABSL_FLAG(double, temperature, 0.8,
          "generate: 0 takes the likeliest token, larger values draw more boldly.");
ABSL_FLAG(uint64_t, seed, 0, "generate: seed of the draws.");

ABSL_FLAG(int, sequence_length, 128, "text-floor: as in the run's configuration.");
ABSL_FLAG(double, held_out_fraction, 0.05, "text-floor: as in the run's configuration.");

namespace distro::worker {
namespace {

template <typename T>
absl::Status Parsed(const absl::StatusOr<T>& value, absl::string_view flag, T* out) {
  if (value.ok()) *out = *value;
  return Annotate(value.status(), flag);
}

constexpr char kUsage[] = R"(trains a model together with other workers, through an aggregator.

  distro-worker --aggregator HOST:PORT --data FILE --name NAME --ca FILE --token_file FILE
      Joins the run that the aggregator holds, trains until it is done, prints a summary. Everything but the data comes
      from the aggregator. SIGINT or SIGTERM leaves the run; a second signal ends at once.

  distro-worker generate --model DIR --prompt TEXT
      Continues a text with a trained checkpoint.

  distro-worker fingerprint --data FILE
      Prints the fingerprint of the tokens, which must be that of all workers of a run.

  distro-worker bench-link HOST:PORT --ca FILE --token_file FILE
      Measures the link with payloads of the run's size, and says whether this worker would hold up the others: exit code 9.

  distro-worker text-floor --data FILE --sequence_length N --held_out_fraction F
      Prints the losses on held-out text that a trained byte model has to get below.

Exit codes: 0 the run is done; 1 failure; 2 a flag, file or configuration must be mended; 3 refused by the aggregator;
4 replaced by a newer process of the same name; 5 the parameters diverged from the run's log and a resync did not help;
6 another version; 7 quarantined; 8 credentials refused; 9 the link is too slow; 10 a rank of the
node failed; 130, 143 SIGINT, SIGTERM.)";

}  // namespace

std::vector<std::string> ParseCommandLine(int argc, char** argv) {
  return ParseFlags(argc, argv,
                    {.program = "distro-worker",
                     .usage = kUsage,
                     .flag_sources = {"worker/flags.cc", kClientFlagsSource}});
}

absl::StatusOr<WorkerOptions> WorkerOptionsFromFlags() {
  const ChannelOptions channel = ChannelOptionsFromFlags(absl::GetFlag(FLAGS_aggregator));
  WorkerOptions options = {
      .aggregator = channel.aggregator,
      .data = absl::GetFlag(FLAGS_data),
      .data_format = absl::GetFlag(FLAGS_data_format),
      .name = absl::GetFlag(FLAGS_name),
      .tls = channel.tls,
      .insecure = channel.insecure,
      .threads = absl::GetFlag(FLAGS_threads),
      .micro_batch_samples = absl::GetFlag(FLAGS_micro_batch_samples),
      .node = {.ranks = absl::GetFlag(FLAGS_ranks),
               .fsdp = {.checkpoint_every = absl::GetFlag(FLAGS_activation_checkpointing),
                        .prefetch_units = absl::GetFlag(FLAGS_prefetch_units),
                        .reduce_every_micro_batch = absl::GetFlag(FLAGS_reduce_every_micro_batch),
                        .cpu_offload = absl::GetFlag(FLAGS_cpu_offload)},
               .rank_timeout = absl::GetFlag(FLAGS_rank_timeout),
               .memory_limit_bytes = absl::GetFlag(FLAGS_memory_limit_bytes)},
      .checkpoint_dir = absl::GetFlag(FLAGS_checkpoint_dir),
      .checkpoint_interval_rounds = absl::GetFlag(FLAGS_checkpoint_interval_rounds),
      .state_dir = absl::GetFlag(FLAGS_state_dir),
      .state_interval_rounds = absl::GetFlag(FLAGS_state_interval_rounds),
      .summary = absl::GetFlag(FLAGS_summary),
      .http = absl::GetFlag(FLAGS_http)};
  DISTRO_RETURN_IF_ERROR(
      Annotate(ParseLogLevel(absl::GetFlag(FLAGS_log_level), &options.log_level), "--log_level"));
  DISTRO_RETURN_IF_ERROR(
      Parsed(ParseDeviceKind(absl::GetFlag(FLAGS_device)), "--device", &options.node.device));
  FsdpOptions& fsdp = options.node.fsdp;
  DISTRO_RETURN_IF_ERROR(
      Parsed(ParseSharding(absl::GetFlag(FLAGS_sharding)), "--sharding", &fsdp.sharding));
  DISTRO_RETURN_IF_ERROR(
      Parsed(ParseFloatType(absl::GetFlag(FLAGS_param_dtype)), "--param_dtype", &fsdp.param_dtype));
  DISTRO_RETURN_IF_ERROR(Parsed(ParseFloatType(absl::GetFlag(FLAGS_reduce_dtype)), "--reduce_dtype",
                                &fsdp.reduce_dtype));
  DISTRO_RETURN_IF_ERROR(options.Validate());
  return options;
}

absl::StatusOr<GenerateCommandOptions> GenerateOptionsFromFlags() {
  GenerateCommandOptions options = {.model = absl::GetFlag(FLAGS_model),
                                    .prompt = absl::GetFlag(FLAGS_prompt),
                                    .tokens = absl::GetFlag(FLAGS_tokens),
                                    .temperature = absl::GetFlag(FLAGS_temperature),
                                    .seed = absl::GetFlag(FLAGS_seed),
                                    .threads = absl::GetFlag(FLAGS_threads)};
  DISTRO_RETURN_IF_ERROR(ValidateThreads(options.threads));
  if (options.tokens < 0) return absl::InvalidArgumentError("--tokens: is below 0");
  if (!(options.temperature >= 0)) return absl::InvalidArgumentError("--temperature: is below 0");
  if (options.model.empty())
    return absl::InvalidArgumentError("--model: is required, a checkpoint folder");
  if (options.prompt.empty())
    return absl::InvalidArgumentError("--prompt: is required, the text to continue");
  return options;
}

absl::StatusOr<TextFloorOptions> TextFloorOptionsFromFlags() {
  const TextFloorOptions options = {.data = absl::GetFlag(FLAGS_data),
                                    .sequence_length = absl::GetFlag(FLAGS_sequence_length),
                                    .held_out_fraction = absl::GetFlag(FLAGS_held_out_fraction)};
  if (options.data.empty()) return absl::InvalidArgumentError("--data: is required, a text");
  return options;
}

FingerprintOptions FingerprintOptionsFromFlags() {
  return {.data = absl::GetFlag(FLAGS_data), .data_format = absl::GetFlag(FLAGS_data_format)};
}

}  // namespace distro::worker
