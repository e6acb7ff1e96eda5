// A plan as numbers, and its text and JSON. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/method/deltas/dense_update.h"
#include "distro/v1/run.pb.h"
#include "nlohmann/json.hpp"
#include "tools/distroctl/plan_cluster.h"
#include "tools/distroctl/plan_disk.h"
#include "tools/distroctl/plan_learning.h"
#include "worker/plan/memory_plan.h"

namespace distro::tools {

struct PlanOptions;

// What a plan assumes of a method.
struct MethodFigures {
  v1::Method number = v1::METHOD_UNSPECIFIED;
  absl::string_view name;
  bool local_steps = false;  // a round may have several, and a window
  bool overlaps = false;     // may compute while it exchanges
  bool cpus_only = false;    // with several ranks a node
  // The most expensive rows of bench/aggregator_load/README.md and docs/performance.md, "Both
  // methods": the aggregator's processor time per position that a worker sends.
  double seconds_a_position = 0;
};
inline constexpr MethodFigures kDeltasFigures = {.number = v1::METHOD_DELTAS,
                                                 .name = "deltas",
                                                 .local_steps = true,
                                                 .cpus_only = true,
                                                 .seconds_a_position = 42e-9};
inline constexpr MethodFigures kSignsFigures = {
    .number = v1::METHOD_SIGNS, .name = "signs", .overlaps = true, .seconds_a_position = 38e-9};

// A worker's traffic and times per round with one method.
struct PlanMethod {
  MethodFigures figures;
  int kept = 0;         // K
  int local_steps = 1;  // H
  bool overlap = false;
  double update = 0;  // bytes up
  double result = 0;  // bytes down, at most
  double upload = 0;  // seconds
  double download = 0;
  double compute = 0;       // of H steps
  double with_overlap = 0;  // a round, of a method that overlaps
  double without_overlap = 0;
  double round = 0;                           // that of the two which the run uses
  std::optional<PlanLearning> learning = {};  // empty: not measured
  double speed_up = 0;                        // over one worker alone; 0: not known

  // Deltas that send every position (common/method/deltas/dense_update.h).
  bool dense() const { return figures.number == kDeltasFigures.number && IsDense(kept); }
  double step() const { return round / local_steps; }
  double update_a_step() const { return update / local_steps; }
  double result_a_step() const { return result / local_steps; }
};

// The model, and the traffic of one of its steps with data parallelism over the same links.
struct PlanBaseline {
  double parameters = 0;  // their number
  double gradient = 0;    // bytes, 16-bit
  double all_reduce = 0;  // received per step if all send to all
  double ring = 0;        // each way per step
  double zero3 = 0;
  double ring_seconds = 0;
  double zero3_seconds = 0;
};

struct PlanServer {
  double sent_a_day = 0;  // bytes
  double received_a_day = 0;
  double up_mbps = 0;  // of the aggregator, mean
  double down_mbps = 0;
  double join = 0;  // bytes that a joiner downloads, at most
  double join_seconds = 0;
};

// One worker, with its own speed.
struct PlanWorker {
  double step_seconds = 0;
  int steps = 0;  // a round
  int weight = 1;
  double steps_a_day = 0;
  double busy = 0;  // share of time spent computing
};

// The same model divided by layers over the same links.
struct PlanPipeline {
  int stages = 0;
  double bubble = 0;                 // idle share of a stage's time
  double bytes = 0;                  // of a micro-batch at a boundary, each way
  double seconds_a_micro_batch = 0;  // for those bytes in the slower direction
  double link_seconds = 0;           // per step, at one boundary, both ways
  double step = 0;                   // the longer of compute with bubble, and the link
};

struct PlanMemory {
  worker::Sharding sharding = worker::Sharding::kNoShard;
  worker::RankMemoryPlan gpu;  // the GPU that needs most
  bool fits = false;
};

struct Plan {
  PlanMethod method;
  std::vector<PlanWorker> workers;  // empty: all are alike
  std::vector<PlanMethod> choices;  // other H and K of deltas, over the same links
  PlanMethod other;                 // the other method with its defaults, over the same links
  double run_days = 0;
  PlanBaseline baseline;
  PlanServer server;
  PlanDisk disk;
  PlanCluster cluster;
  PlanPipeline pipeline;
  std::vector<PlanMemory> memories;
};

std::string PlanText(const Plan& plan, const PlanOptions& options);
nlohmann::json PlanJson(const Plan& plan);

}  // namespace distro::tools
