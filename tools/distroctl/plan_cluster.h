// Calculates the CPU, memory, disk and egress that the aggregator and the archiver of a planned run
// need, from measured figures, and the chart's values for them. Pure.
//
//   const PlanCluster cluster = ClusterOf({.parameters = 1.2e9, .blocks = 294177, .workers = 32},
//                                         method);
//   std::cout << HelmValues(cluster);   // resources: ...
//
// Measurements: docs/performance.md, "Aggregator under load", and docs/archiver.md, "Does it keep
// up?". Memory of the archiver and its threads with deltas were not measured at this size.
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
  // Per round: W x blocks x K x the method's figure. Deltas with K = 4096: what a position, a sign
  // and a byte cost.
  double aggregator_cpu_seconds = 0;
  double aggregator_cores = 0;  // so that this takes a tenth of the round; at least 0.5
  // 0.4 GB + 2 x W x update + 7.5 x result + 134 MB for each core above 2 + 48 bytes a round of the
  // run.
  double aggregator_memory = 0;
  // 7 sets of parameters of 4 bytes each, headers and blocks; a fifth of the volume free.
  double aggregator_disk = 0;
  double egress_a_day = 0;            // W x result a round, payload bytes
  double egress_bits_per_second = 0;  // mean
  // One core each: parameters / 283 M a second and core, within the round.
  double archiver_threads = 0;
  // 0.3 GB + 4 bytes a parameter + 4 bytes an entry of a decoded round + 3 x result.
  double archiver_memory = 0;
  double archiver_disk = 0;  // as the aggregator's, without headers and blocks
};

// Requires a round of non-zero duration.
PlanCluster ClusterOf(const PlanSize& size, const PlanMethod& method);

std::string ClusterText(const PlanCluster& cluster);
nlohmann::json ClusterJson(const PlanCluster& cluster);
// Values for helm/distro as YAML: requests, sizes of volumes, the archiver's threads; rounded up.
std::string HelmValues(const PlanCluster& cluster);

}  // namespace distro::tools
