#include "tools/distroctl/plan.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/file.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/method/base/method.h"
#include "common/method/deltas/dense_update.h"
#include "common/method/signs/payload.h"
#include "common/model/architecture.h"
#include "common/model/layout/layout.h"
#include "common/run/record/header_bound.h"
#include "common/run/run_config.h"
#include "distro/v1/run.pb.h"
#include "tools/distroctl/plan_cluster.h"
#include "tools/distroctl/plan_disk.h"
#include "tools/distroctl/plan_learning.h"
#include "tools/distroctl/plan_memory.h"
#include "tools/distroctl/plan_report.h"
#include "worker/plan/memory_plan.h"

namespace distro::tools {
namespace {

constexpr uint64_t kMaxConfigBytes = 1 << 20;
constexpr double kSecondsADay = 86400;

absl::Status Range(absl::string_view flag, double value, double least, double most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("--%s: %g is outside %g to %g", flag, value, least, most));
}

const MethodFigures& FiguresOf(const PlanOptions& o) {
  return o.method == kDeltasFigures.name ? kDeltasFigures : kSignsFigures;
}

absl::Status CheckMethod(const PlanOptions& o) {
  const MethodFigures& method = FiguresOf(o);
  if (o.method != method.name) {
    return absl::InvalidArgumentError(
        absl::StrCat("--method: '", o.method, "' is not a method: give deltas or signs"));
  }
  DISTRO_RETURN_IF_ERROR(Range("local_steps", o.local_steps, 0, 1000));
  if (!method.local_steps && o.local_steps > 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("--local_steps: ", o.local_steps,
                     ": signs take one step a round: remove the flag, or give --method deltas"));
  }
  if (!method.local_steps && o.window_seconds > 0)
    return absl::InvalidArgumentError("--window_seconds: needs --method deltas");
  if (method.overlaps || !o.overlap.value_or(false)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      "--overlap: 1: deltas do not overlap: remove the flag, or give --method signs");
}

// The configuration of the planned run, which fills in its method's defaults.
absl::StatusOr<v1::RunConfig> RunOf(const PlanOptions& o) {
  v1::RunConfig config;
  config.set_name("plan");
  config.set_rounds(o.rounds);
  config.set_max_workers(static_cast<uint32_t>(o.workers));
  config.set_sequence_length(o.sequence_length);
  config.set_samples_per_worker(o.micro_batch);
  const MethodFigures& method = FiguresOf(o);
  config.set_method(method.number);
  if (method.local_steps && o.local_steps != 0) config.set_local_steps(o.local_steps);
  if (o.kept != 0) config.set_kept_per_block(o.kept);
  if (o.kept_votes != 0) {
    config.set_download(v1::DOWNLOAD_MODE_TOP);
    config.set_kept_votes_per_block(o.kept_votes);
  }
  if (o.window_seconds > 0 && method.local_steps)
    config.mutable_round_window()->set_seconds(static_cast<int64_t>(std::ceil(o.window_seconds)));
  if (o.overlap.has_value()) config.set_overlap(*o.overlap ? 1 : 0);
  return CompleteRunConfig(std::move(config));
}

PlanOptions OfTheOtherMethod(PlanOptions o) {
  o.method = std::string(FiguresOf(o).number == kDeltasFigures.number ? kSignsFigures.name
                                                                      : kDeltasFigures.name);
  o.local_steps = 0;
  o.kept = 0;
  o.overlap.reset();
  return o;
}

// The path of config.json: `model` is a checkpoint folder, as in other commands, or the file
// itself.
std::string ConfigOf(const std::string& model) {
  std::error_code error;
  return std::filesystem::is_directory(model, error) ? absl::StrCat(model, "/config.json") : model;
}

double UpdateBytes(const Layout& layout, const PlanMethod& m) {
  if (m.dense())
    return static_cast<double>(DenseUpdateBytes(static_cast<uint64_t>(layout.blocks())));
  if (m.figures.number == v1::METHOD_DELTAS)
    return EntropyBytes(static_cast<double>(layout.blocks()), m.kept, kDeltaUpdateBits);
  double bytes = 0;
  for (SegmentId s(0); s.value() < layout.segments(); s = s.Next()) {
    const auto blocks = static_cast<uint64_t>(layout.SegmentBlocks(s));
    bytes += m.kept <= 8 ? static_cast<double>(SignRecordUpdateBytes(blocks, m.kept))
                         : EntropyBytes(static_cast<double>(blocks), m.kept, kSignsBits);
  }
  return bytes;
}

// The largest result: no two workers agree on a position, or on signs.
double ResultBytes(const Layout& layout, const PlanMethod& m, const PlanOptions& o) {
  if (m.dense())
    return static_cast<double>(layout.blocks()) * kBlockElements * DenseResultBits(o.workers) / 8;
  const double sent = static_cast<double>(o.workers) * m.kept;
  return MostBytes(static_cast<double>(layout.blocks()),
                   o.kept_votes == 0 ? sent : std::min<double>(o.kept_votes, sent),
                   m.figures.number == v1::METHOD_DELTAS ? kDeltaResultBits : kSignsBits);
}

double ComputeSeconds(const PlanMethod& m, const PlanOptions& o) {
  if (o.step_seconds.empty()) return m.local_steps * o.compute_seconds;
  double longest = 0;
  for (const double step : o.step_seconds)
    longest = std::max(longest, RoundOfWorker(step, o.window_seconds, m.local_steps).seconds);
  return longest;
}

std::vector<PlanWorker> WorkersOf(const PlanMethod& m, const PlanOptions& o) {
  std::vector<PlanWorker> workers;
  for (const double step : o.step_seconds) {
    const WorkerRound round = RoundOfWorker(step, o.window_seconds, m.local_steps);
    workers.push_back({.step_seconds = step,
                       .steps = round.steps,
                       .weight = round.weight,
                       .steps_a_day = kSecondsADay / m.round * round.steps,
                       .busy = round.seconds / m.round});
  }
  return workers;
}

// With a window the steps differ from worker to worker, and cut results have no measured gain.
bool MayCompare(const PlanMethod& m, const PlanOptions& o) {
  return m.figures.number == kDeltasFigures.number && o.window_seconds == 0 && o.kept_votes == 0;
}

PlanMethod MethodOf(const v1::RunConfig& config, const Layout& layout, const PlanOptions& o) {
  PlanMethod m;
  m.figures = config.method() == kDeltasFigures.number ? kDeltasFigures : kSignsFigures;
  m.kept = static_cast<int>(config.kept_per_block());
  m.local_steps = m.figures.local_steps ? static_cast<int>(config.local_steps()) : 1;
  m.overlap = config.overlap() == 1;
  m.update = UpdateBytes(layout, m);
  m.result = ResultBytes(layout, m, o);
  m.upload = TransferSeconds(m.update, 1e6 * o.up_mbps);
  m.download = TransferSeconds(m.result, 1e6 * o.down_mbps);
  m.compute = ComputeSeconds(m, o);
  m.with_overlap = std::max(m.compute, m.upload + m.download);
  m.without_overlap = m.compute + m.upload + m.download;
  m.round = m.overlap ? m.with_overlap : m.without_overlap;
  if (MayCompare(m, o)) m.learning = LearningOf(m.local_steps, m.kept, o.workers);
  if (m.learning && o.step_seconds.empty())
    m.speed_up = m.learning->machines * o.compute_seconds / m.step();
  return m;
}

absl::StatusOr<std::vector<PlanMethod>> ChoicesOf(const PlanMethod& planned, const Layout& layout,
                                                  PlanOptions o) {
  std::vector<PlanMethod> choices;
  if (!MayCompare(planned, o)) return choices;
  for (const DeltasChoice& choice : kDeltasChoices) {
    if (planned.local_steps == choice.local_steps && planned.kept == choice.kept) continue;
    o.local_steps = choice.local_steps;
    o.kept = choice.kept;
    DISTRO_ASSIGN_OR_RETURN(const v1::RunConfig config, RunOf(o));
    choices.push_back(MethodOf(config, layout, o));
  }
  return choices;
}

PlanBaseline BaselineOf(const Layout& layout, const PlanOptions& o) {
  PlanBaseline baseline;
  baseline.parameters = static_cast<double>(layout.elements());
  baseline.gradient = GradientBytes(baseline.parameters);
  baseline.all_reduce = ReceivedFromAll(baseline.gradient, o.workers);
  baseline.ring = RingAllReduceBytes(baseline.gradient, o.workers);
  baseline.zero3 = Zero3Bytes(baseline.gradient, o.workers);
  const double slower = 1e6 * std::min(o.up_mbps, o.down_mbps);
  baseline.ring_seconds = o.compute_seconds + TransferSeconds(baseline.ring, slower);
  baseline.zero3_seconds = o.compute_seconds + TransferSeconds(baseline.zero3, slower);
  return baseline;
}

PlanServer ServerOf(double parameters, const PlanMethod& m, const PlanOptions& o) {
  PlanServer server;
  const double rounds_a_day = kSecondsADay / m.round;
  server.sent_a_day = rounds_a_day * o.workers * m.result;
  server.received_a_day = rounds_a_day * o.workers * m.update;
  server.up_mbps = 8e-6 * o.workers * m.result / m.round;
  server.down_mbps = 8e-6 * o.workers * m.update / m.round;
  const double model = 4 * parameters;
  server.join = model + model;  // a snapshot, and at most as much of the log
  server.join_seconds = TransferSeconds(server.join, 1e6 * o.down_mbps);
  return server;
}

PlanPipeline PipelineOf(const ModelSizes& model, const PlanOptions& o) {
  PlanPipeline pipeline;
  const int stages = std::min(o.workers, model.layers);
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

}  // namespace

WorkerRound RoundOfWorker(double step_seconds, double window_seconds, int local_steps) {
  if (window_seconds == 0) return {.steps = local_steps, .seconds = local_steps * step_seconds};
  const double fit = std::clamp<double>(std::floor(window_seconds / step_seconds), 1, local_steps);
  const auto steps = static_cast<int>(fit);
  return {
      .steps = steps, .weight = StepsWeight(steps, local_steps), .seconds = steps * step_seconds};
}

absl::Status PlanOptions::Validate() const {
  if (model.empty())
    return absl::InvalidArgumentError(
        "--model: is required, a folder with config.json, or the file");
  DISTRO_RETURN_IF_ERROR(Range("workers", workers, 1, 4096));
  DISTRO_RETURN_IF_ERROR(Range("gpus", gpus, 1, 64));
  DISTRO_RETURN_IF_ERROR(Range("gpu_memory_gb", gpu_memory_gb, 0.001, 1e4));
  DISTRO_RETURN_IF_ERROR(Range("up_mbps", up_mbps, 1e-3, 1e6));
  DISTRO_RETURN_IF_ERROR(Range("down_mbps", down_mbps, 1e-3, 1e6));
  DISTRO_RETURN_IF_ERROR(Range("compute_seconds", compute_seconds, 1e-3, 1e6));
  for (const double step : step_seconds)
    DISTRO_RETURN_IF_ERROR(Range("step_seconds", step, 1e-3, 1e6));
  DISTRO_RETURN_IF_ERROR(Range("window_seconds", window_seconds, 0, 604800));
  if (window_seconds > 0 && step_seconds.empty())
    return absl::InvalidArgumentError("--window_seconds: needs --step_seconds of the workers");
  DISTRO_RETURN_IF_ERROR(Range("rounds", static_cast<double>(rounds), 1, 4294967296.0));
  DISTRO_RETURN_IF_ERROR(CheckMethod(*this));
  DISTRO_RETURN_IF_ERROR(Range("kept", kept, 0, 4096));
  DISTRO_RETURN_IF_ERROR(Range("kept_votes", kept_votes, 0, 4096));
  DISTRO_RETURN_IF_ERROR(Range("micro_batch", micro_batch, 1, 65536));
  DISTRO_RETURN_IF_ERROR(Range("sequence_length", sequence_length, 1, 1 << 20));
  DISTRO_RETURN_IF_ERROR(Range("activation_checkpointing", activation_checkpointing, 0, 1024));
  const absl::StatusOr<worker::FloatType> type = worker::ParseFloatType(param_dtype);
  if (!type.ok()) return Annotate(type.status(), "--param_dtype");
  return Range("pipeline_micro_batches", micro_batches_of_pipeline, 1, 65536);
}

absl::StatusOr<Report> MakePlan(const PlanOptions& given) {
  DISTRO_RETURN_IF_ERROR(given.Validate());
  PlanOptions options = given;
  if (!options.step_seconds.empty())
    options.compute_seconds = *std::ranges::max_element(options.step_seconds);
  const std::string path = ConfigOf(options.model);
  DISTRO_ASSIGN_OR_RETURN(const std::string json, ReadTextFile(path, kMaxConfigBytes));
  const absl::StatusOr<std::shared_ptr<const Architecture>> model = ParseModelConfig(json);
  if (!model.ok()) return Annotate(model.status(), path);
  DISTRO_ASSIGN_OR_RETURN(Manifest manifest, Manifest::Create((*model)->Tensors()));
  DISTRO_ASSIGN_OR_RETURN(const Layout layout,
                          Layout::Create(std::move(manifest), kDefaultSegmentBlocks));
  DISTRO_ASSIGN_OR_RETURN(const v1::RunConfig config, RunOf(options));
  const HeaderShape header = HeaderShapeOf(config, layout);
  const absl::Status room = CheckHeaderBound(config, header);
  if (!room.ok()) return Annotate(room, "--workers");
  DISTRO_ASSIGN_OR_RETURN(const v1::RunConfig other, RunOf(OfTheOtherMethod(options)));
  Plan plan;
  plan.method = MethodOf(config, layout, options);
  plan.workers = WorkersOf(plan.method, options);
  DISTRO_ASSIGN_OR_RETURN(plan.choices, ChoicesOf(plan.method, layout, options));
  plan.other = MethodOf(other, layout, options);
  plan.run_days = plan.method.round * static_cast<double>(options.rounds) / kSecondsADay;
  plan.baseline = BaselineOf(layout, options);
  plan.server = ServerOf(plan.baseline.parameters, plan.method, options);
  plan.disk =
      DiskOf({.parameters = plan.baseline.parameters,
              .segments = layout.segments(),
              .header_bytes = LargestHeaderBytes(static_cast<uint32_t>(options.workers), header),
              .rounds = options.rounds},
             plan.method);
  plan.cluster = ClusterOf({.parameters = plan.baseline.parameters,
                            .blocks = static_cast<double>(layout.blocks()),
                            .workers = options.workers,
                            .rounds = static_cast<double>(options.rounds),
                            .log_bytes = plan.disk.log_bytes},
                           plan.method);
  plan.pipeline = PipelineOf((*model)->sizes(), options);
  DISTRO_ASSIGN_OR_RETURN(plan.memories, PlanMemories(config, **model, layout, options));
  Report report = {
      .text = PlanText(plan, options), .json = PlanJson(plan), .helm = HelmValues(plan.cluster)};
  const bool fits = std::any_of(plan.memories.begin(), plan.memories.end(),
                                [](const PlanMemory& memory) { return memory.fits; });
  if (!fits) {
    report.verdict = absl::AbortedError(
        "no strategy fits the memory: more GPUs a node, larger ones (with deltas, a node with more "
        "memory), or a smaller --micro_batch");
  }
  return report;
}

}  // namespace distro::tools
