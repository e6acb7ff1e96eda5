// A plan as values, and how it is written. Pure.
#pragma once

#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "worker/plan/memory_plan.h"

namespace distro::tools {

struct PlanOptions;

struct PlanBytes {
  double parameters = 0;  // their number
  double gradient = 0;    // 16-bit
  double update = 0;      // up, a worker and round
  double result = 0;      // down, a worker and round
  double all_reduce = 0;  // received a step when all send to all
  double ring = 0;        // each way a step
  double zero3 = 0;
};

// Seconds a round or step, where nothing else is said.
struct PlanTimes {
  double upload = 0;
  double download = 0;
  double with_overlap = 0;
  double without_overlap = 0;
  double round = 0;  // of the two, as the run is set
  double ring = 0;   // of a step with data parallelism over the same links
  double zero3 = 0;
  double run_days = 0;
};

struct PlanServer {
  double sent_a_day = 0;  // bytes
  double received_a_day = 0;
  double up_mbps = 0;  // of the aggregator, on average
  double down_mbps = 0;
  double disk_with_archiver = 0;  // bytes
  double disk_without_archiver = 0;
  double join = 0;  // bytes that a joiner downloads, at most
  double join_seconds = 0;
};

// The same model cut by layers over the same links.
struct PlanPipeline {
  int stages = 0;
  double bubble = 0;                 // idle share of a stage's time
  double bytes = 0;                  // of a micro-batch at a boundary, each way
  double seconds_a_micro_batch = 0;  // of them on the slower direction
  double link_seconds = 0;           // of a step, at one boundary, there and back
  double step = 0;                   // the longer of compute with the bubble, and the link
};

struct PlanMemory {
  worker::Sharding sharding = worker::Sharding::kNoShard;
  worker::RankMemoryPlan gpu;  // that needs most
  bool fits = false;
};

struct Plan {
  PlanBytes bytes;
  PlanTimes times;
  PlanServer server;
  PlanPipeline pipeline;
  std::vector<PlanMemory> memories;
};

std::string PlanText(const Plan& plan, const PlanOptions& options);
nlohmann::json PlanJson(const Plan& plan);

}  // namespace distro::tools
