// Calculates the CPU, memory, disk and egress that the aggregator and the archiver of a planned run
// need, from measured figures, and the chart's values for them. Pure.
//
//   const PlanCluster cluster = ClusterOf({.parameters = 1.2e9, .blocks = 294177, .workers = 32},
//                                         method);
//   std::cout << HelmValues(cluster);   // resources: ...
//
// Formulas: docs/tools.md, "plan". Measurements: docs/performance.md, "Aggregator under load", and
// docs/archiver.md, "Does it keep up?".
#pragma once

#include <string>

#include "nlohmann/json.hpp"

namespace distro::tools {

struct PlanMethod;

struct PlanSize {
  double parameters = 0;
  double blocks = 0;
  int workers = 1;
  double rounds = 1;     // of the run
  double log_bytes = 0;  // on the aggregator's disk, besides models and results
};

// Bytes, decimal; seconds of processor time; cores.
struct PlanCluster {
  double aggregator_cpu_seconds = 0;  // per round
  double aggregator_cores = 0;        // so that this takes a tenth of the round
  double aggregator_memory = 0;
  double aggregator_disk = 0;
  double egress_a_day = 0;
  double egress_bits_per_second = 0;  // mean
  double archiver_threads = 0;        // one core each
  double archiver_memory = 0;
  double archiver_disk = 0;
};

// Requires a round of non-zero duration.
PlanCluster ClusterOf(const PlanSize& size, const PlanMethod& method);

std::string ClusterText(const PlanCluster& cluster);
nlohmann::json ClusterJson(const PlanCluster& cluster);
// Values for helm/distro as YAML: requests, sizes of volumes, the archiver's threads; rounded up.
std::string HelmValues(const PlanCluster& cluster);

}  // namespace distro::tools
