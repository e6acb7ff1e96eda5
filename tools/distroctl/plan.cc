#include "tools/distroctl/plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/codec/payload.h"
#include "common/layout/layout.h"
#include "common/model/architecture.h"
#include "distro/v1/run.pb.h"
#include "tools/distroctl/plan_report.h"
#include "worker/optimizer/update_rule.h"
#include "worker/plan/memory_plan.h"

namespace distro::tools {
namespace {

constexpr uint64_t kMaxConfigBytes = 1 << 20;
constexpr double kSecondsADay = 86400;
constexpr double kReservedBytes = 1e9;  // CUDA context, NCCL, libraries

absl::Status Range(absl::string_view flag, double value, double least, double most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("--%s: %g is outside %g to %g", flag, value, least, most));
}

double UpdateBytes(const Layout& layout, int k) {
  double bytes = 0;
  for (SegmentId s(0); s.value() < layout.segments(); s = s.Next()) {
    const auto blocks = static_cast<uint64_t>(layout.SegmentBlocks(s));
    bytes += k <= 8 ? static_cast<double>(RecordUpdatePayloadBytes(blocks, k))
                    : EntropyBytes(static_cast<double>(blocks), k);
  }
  return bytes;
}

PlanBytes BytesOf(const Layout& layout, const PlanOptions& o) {
  PlanBytes bytes;
  const auto blocks = static_cast<double>(layout.blocks());
  bytes.parameters = static_cast<double>(layout.elements());
  bytes.gradient = GradientBytes(bytes.parameters);
  bytes.update = UpdateBytes(layout, o.kept);
  bytes.result = o.kept_votes == 0 ? LosslessResultBytes(blocks, o.nodes, o.kept)
                                   : EntropyBytes(blocks, std::min(o.kept_votes, o.nodes * o.kept));
  bytes.all_reduce = ReceivedFromAll(bytes.gradient, o.nodes);
  bytes.ring = RingAllReduceBytes(bytes.gradient, o.nodes);
  bytes.zero3 = Zero3Bytes(bytes.gradient, o.nodes);
  return bytes;
}

PlanTimes TimesOf(const PlanBytes& bytes, const PlanOptions& o) {
  PlanTimes times;
  const double up = 1e6 * o.up_mbps, down = 1e6 * o.down_mbps;
  times.upload = TransferSeconds(bytes.update, up);
  times.download = TransferSeconds(bytes.result, down);
  const double exchange = times.upload + times.download;
  times.with_overlap = std::max(o.compute_seconds, exchange);
  times.without_overlap = o.compute_seconds + exchange;
  times.round = o.overlap ? times.with_overlap : times.without_overlap;
  times.ring = o.compute_seconds +
               std::max(TransferSeconds(bytes.ring, up), TransferSeconds(bytes.ring, down));
  times.zero3 = o.compute_seconds +
                std::max(TransferSeconds(bytes.zero3, up), TransferSeconds(bytes.zero3, down));
  times.run_days = times.round * static_cast<double>(o.rounds) / kSecondsADay;
  return times;
}

PlanServer ServerOf(const PlanBytes& bytes, const PlanTimes& times, const PlanOptions& o) {
  PlanServer server;
  const double rounds_a_day = kSecondsADay / times.round;
  server.sent_a_day = rounds_a_day * o.nodes * bytes.result;
  server.received_a_day = rounds_a_day * o.nodes * bytes.update;
  server.up_mbps = 8e-6 * o.nodes * bytes.result / times.round;
  server.down_mbps = 8e-6 * o.nodes * bytes.update / times.round;
  const double model = 4 * bytes.parameters;
  // The initial model, two snapshots and one that arrives, and the rounds after the older: a
  // model's bytes of results lie between two snapshots.
  server.disk_with_archiver = 4 * model + 2 * model;
  server.disk_without_archiver = model + bytes.result * static_cast<double>(o.rounds);
  server.join = model + model;  // a snapshot, and at most as much of the log
  server.join_seconds = TransferSeconds(server.join, 1e6 * o.down_mbps);
  return server;
}

PlanPipeline PipelineOf(const ModelSizes& model, const PlanOptions& o) {
  PlanPipeline pipeline;
  const int stages = std::min(o.nodes, model.layers);
  const int micro_batches = o.micro_batches_of_pipeline;
  pipeline.stages = stages;
  pipeline.bubble = PipelineBubble(stages, micro_batches);
  pipeline.bytes = 2.0 * o.micro_batch * o.sequence_length * model.hidden_size;
  pipeline.seconds_a_micro_batch =
      TransferSeconds(pipeline.bytes, 1e6 * std::min(o.up_mbps, o.down_mbps));
  pipeline.link_seconds = 2 * micro_batches * pipeline.seconds_a_micro_batch;
  pipeline.step = std::max(o.compute_seconds / (1 - pipeline.bubble), pipeline.link_seconds);
  return pipeline;
}

PlanMemory MemoryOf(worker::Sharding sharding, const worker::MemoryPlan& plan,
                    const PlanOptions& o) {
  const auto by_device_bytes = [](const worker::RankMemoryPlan& a,
                                  const worker::RankMemoryPlan& b) {
    return a.device_bytes < b.device_bytes;
  };
  const worker::RankMemoryPlan& gpu =
      *std::max_element(plan.ranks.begin(), plan.ranks.end(), by_device_bytes);
  return {.sharding = sharding,
          .gpu = gpu,
          .fits = static_cast<double>(gpu.device_bytes) + kReservedBytes <= 1e9 * o.gpu_memory_gb};
}

absl::StatusOr<std::vector<PlanMemory>> MemoriesOf(const Architecture& model, const Layout& layout,
                                                   const PlanOptions& o) {
  DISTRO_ASSIGN_OR_RETURN(const worker::FloatType type, worker::ParseFloatType(o.param_dtype));
  const worker::UpdateRuleKind& rule = worker::RuleOf(v1::RunConfig());
  worker::MemoryRequest request = {
      .model = &model,
      .layout = &layout,
      .units = UnitTensors(model, layout.manifest()),
      .ranks = o.gpus,
      .options = {.param_dtype = type, .checkpoint_every = o.activation_checkpointing},
      .sequences = o.micro_batch,
      .positions = o.sequence_length,
      .element_arrays = rule.element_arrays,
      .block_bytes = rule.PendingBytes(o.kept),
      .lookahead = o.overlap};
  std::vector<PlanMemory> memories;
  for (const worker::Sharding sharding :
       {worker::Sharding::kNoShard, worker::Sharding::kShardOptimizer,
        worker::Sharding::kShardGradOp, worker::Sharding::kFullShard}) {
    request.options.sharding = sharding;
    DISTRO_ASSIGN_OR_RETURN(const worker::MemoryPlan plan, worker::PlanMemory(request));
    memories.push_back(MemoryOf(sharding, plan, o));
  }
  return memories;
}

constexpr double kBlockElements = 4096;

double Log2Choose(double n, double k) {
  return (std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1)) / std::log(2.0);
}

}  // namespace

absl::Status PlanOptions::Validate() const {
  if (config.empty()) return absl::InvalidArgumentError("--config: is required, a config.json");
  DISTRO_RETURN_IF_ERROR(Range("nodes", nodes, 1, 1024));
  DISTRO_RETURN_IF_ERROR(Range("gpus", gpus, 1, 64));
  DISTRO_RETURN_IF_ERROR(Range("gpu_memory_gb", gpu_memory_gb, 0.001, 1e4));
  DISTRO_RETURN_IF_ERROR(Range("up_mbps", up_mbps, 1e-3, 1e6));
  DISTRO_RETURN_IF_ERROR(Range("down_mbps", down_mbps, 1e-3, 1e6));
  DISTRO_RETURN_IF_ERROR(Range("compute_seconds", compute_seconds, 1e-3, 1e6));
  DISTRO_RETURN_IF_ERROR(Range("rounds", static_cast<double>(rounds), 1, 4294967296.0));
  DISTRO_RETURN_IF_ERROR(Range("kept", kept, 1, 4096));
  DISTRO_RETURN_IF_ERROR(Range("kept_votes", kept_votes, 0, 4096));
  DISTRO_RETURN_IF_ERROR(Range("micro_batch", micro_batch, 1, 65536));
  DISTRO_RETURN_IF_ERROR(Range("sequence_length", sequence_length, 1, 1 << 20));
  DISTRO_RETURN_IF_ERROR(Range("activation_checkpointing", activation_checkpointing, 0, 1024));
  const absl::StatusOr<worker::FloatType> type = worker::ParseFloatType(param_dtype);
  if (!type.ok()) return Annotate(type.status(), "--param_dtype");
  return Range("pipeline_micro_batches", micro_batches_of_pipeline, 1, 65536);
}

absl::StatusOr<Report> MakePlan(const PlanOptions& options) {
  DISTRO_RETURN_IF_ERROR(options.Validate());
  DISTRO_ASSIGN_OR_RETURN(const std::string json, ReadFile(options.config, kMaxConfigBytes));
  const absl::StatusOr<std::shared_ptr<const Architecture>> model = ParseModelConfig(json);
  if (!model.ok()) return Annotate(model.status(), options.config);
  DISTRO_ASSIGN_OR_RETURN(Manifest manifest, Manifest::Create((*model)->Tensors()));
  DISTRO_ASSIGN_OR_RETURN(const Layout layout,
                          Layout::Create(std::move(manifest), kDefaultSegmentBlocks));
  Plan plan;
  plan.bytes = BytesOf(layout, options);
  plan.times = TimesOf(plan.bytes, options);
  plan.server = ServerOf(plan.bytes, plan.times, options);
  plan.pipeline = PipelineOf((*model)->sizes(), options);
  DISTRO_ASSIGN_OR_RETURN(plan.memories, MemoriesOf(**model, layout, options));
  Report report = {.text = PlanText(plan, options), .json = PlanJson(plan)};
  const bool fits = std::any_of(plan.memories.begin(), plan.memories.end(),
                                [](const PlanMemory& memory) { return memory.fits; });
  if (!fits) {
    report.verdict = absl::AbortedError(
        "no strategy fits the memory: more GPUs a node, larger ones, or a smaller --micro_batch");
  }
  return report;
}

Command PlanCommand(const Console* console) {
  struct Given {
    PlanOptions options;
    int overlap = 1;
  };
  const auto given = std::make_shared<Given>();
  PlanOptions& o = given->options;
  const auto flag = [](const char* name, FlagValue value, const char* help) {
    return Flag{.name = name, .value = std::move(value), .help = help};
  };
  return {
      .name = "plan",
      .summary =
          "Memory, bytes and seconds of a run, from its model and its links; nothing is started.",
      .flags = {{.name = "config",
                 .value = &given->options.config,
                 .help = "config.json of the model, Hugging Face layout. Required.",
                 .takes = Takes::kFile},
                flag("nodes", &o.nodes, "Workers: machines with links of their own."),
                flag("gpus", &o.gpus, "GPUs of a node."),
                flag("gpu_memory_gb", &o.gpu_memory_gb, "Memory of a GPU, 10^9 bytes."),
                flag("up_mbps", &o.up_mbps, "Uplink of a node, Mbit/s."),
                flag("down_mbps", &o.down_mbps, "Downlink of a node, Mbit/s."),
                flag("compute_seconds", &o.compute_seconds,
                     "Time that a round's gradient takes on a node."),
                flag("rounds", &o.rounds, "Rounds of the run."),
                flag("kept", &o.kept, "K: coefficients that are sent of a block (kept_per_block)."),
                flag("kept_votes", &o.kept_votes,
                     "K' of download = top (kept_votes_per_block); 0: lossless."),
                flag("overlap", &given->overlap, "overlap of the run: 0 or 1."),
                flag("micro_batch", &o.micro_batch, "Samples of one forward and backward pass."),
                flag("sequence_length", &o.sequence_length, "Tokens a sample."),
                {.name = "param_dtype",
                 .value = &given->options.param_dtype,
                 .help = "Of the copy that computes, as of the worker.",
                 .choices = {"f32", "bf16"}},
                flag("activation_checkpointing", &o.activation_checkpointing,
                     "Recompute every how many units in backward, as of the worker; 0: none."),
                flag("pipeline_micro_batches", &o.micro_batches_of_pipeline,
                     "Of the pipeline that it is compared with.")},
      .help =
          R"(Formulas and their sources: docs/tools.md, "plan". Results are the most there can be: workers that agree make them
smaller. Memory is what a worker plans for its rank at the start, of the rank that needs most; a strategy "fits" with 1 GB
to spare for CUDA and libraries; 5 when none does. What the link really does: distroctl bench-link.

Example:
  distroctl plan --config examples/llama_1b2/config.json --nodes 32 --gpus 1 --gpu_memory_gb 80 --up_mbps 10 --down_mbps 100 --kept_votes 32)",
      .run = [given, console]() -> absl::StatusOr<int> {
        if (given->overlap != 0 && given->overlap != 1)
          return absl::InvalidArgumentError("--overlap: is 0 or 1");
        given->options.overlap = given->overlap == 1;
        return console->Show(MakePlan(given->options));
      }};
}

double GradientBytes(double parameters) { return 2 * parameters; }

double ReceivedFromAll(double bytes, int n) { return bytes * (n - 1); }

double RingAllReduceBytes(double bytes, int n) { return 2 * bytes * (n - 1) / n; }

double Zero3Bytes(double bytes, int n) { return 3 * bytes * (n - 1) / n; }

double EntropyBytes(double blocks, int votes) {
  return blocks * (Log2Choose(kBlockElements, votes) + votes) / 8;
}

double LosslessResultBytes(double blocks, int n, int k) {
  return EntropyBytes(blocks, static_cast<int>(std::min<int64_t>(int64_t{n} * k, 4096)));
}

double PipelineBubble(int stages, int micro_batches) {
  return static_cast<double>(stages - 1) / (micro_batches + stages - 1);
}

}  // namespace distro::tools
