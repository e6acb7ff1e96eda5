#include "tools/distroctl/plan_cluster.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/distroctl/plan_report.h"
#include "tools/distroctl/report.h"

namespace distro::tools {
namespace {

constexpr double kSecondsADay = 86400;
constexpr double kGibi = 1024.0 * 1024 * 1024;

// Above this share of a round the aggregator, not links and GPUs, limits the rate.
constexpr double kShareOfRound = 0.1;
constexpr double kLeastCores = 0.5;
// In each row of the aggregator's load tests its resident memory is below this plus twice the
// round's updates plus 7.5 results.
constexpr double kBaseMemory = 0.4e9;
constexpr double kUpdatesHeld = 2;
constexpr double kResultsHeld = 7.5;
// The program itself, 27 MB, is in the base. A round's hash and state in memory, with room to grow.
constexpr double kMemoryARound = 48;
// Measured with two cores; each further core combines in its own memory.
constexpr double kMeasuredCores = 2;
constexpr double kMemoryACore = 134e6;
// docs/archiver.md, "Does it keep up?": parameters per second and core, AVX2.
constexpr double kReplayedASecond = 283e6;
// Its parameters, one decoded round of 4 bytes per entry, three results, and the process itself,
// of which the program is 22 MB.
constexpr double kEntryBytes = 4;
constexpr double kArchiverResults = 3;
constexpr double kArchiverBase = 0.3e9;
// Copies of the parameters on the volumes: helm/distro/README.md, "Disk". A fifth stays free, twice
// the share at which DistroDiskFilling fires.
constexpr double kAggregatorCopies = 7;
constexpr double kArchiverCopies = 7;
constexpr double kDiskUse = 0.8;

double AggregatorMemory(const PlanSize& size, const PlanMethod& m, double cores) {
  const double more_cores = std::max(0.0, std::ceil(cores) - kMeasuredCores);
  return kBaseMemory + kUpdatesHeld * size.workers * m.update + kResultsHeld * m.result +
         kMemoryACore * more_cores + kMemoryARound * size.rounds;
}

double ArchiverMemory(const PlanSize& size, const PlanMethod& m) {
  const double entries = std::min<double>(static_cast<double>(size.workers) * m.kept, 4096);
  return kArchiverBase + 4 * size.parameters + kEntryBytes * entries * size.blocks +
         kArchiverResults * m.result;
}

// "2Gi"
std::string Gibi(double bytes) { return absl::StrFormat("%.0fGi", std::ceil(bytes / kGibi)); }

// "500m", "2500m"
std::string Cores(double cores) { return absl::StrFormat("%.0fm", 500 * std::ceil(2 * cores)); }

double AggregatorSeconds(const PlanSize& size, const PlanMethod& m) {
  if (!m.dense()) return size.workers * size.blocks * m.kept * m.figures.seconds_a_position;
  // bench/aggregator_load/README.md, "Every position": within a tenth of what it measured.
  constexpr double kPosition = 4.2e-9, kSign = 0.5e-9, kByte = 0.4e-9;
  return size.blocks * kBlockElements * (kPosition + kSign * size.workers) +
         size.workers * (m.update + m.result) * kByte;
}

}  // namespace

PlanCluster ClusterOf(const PlanSize& size, const PlanMethod& m) {
  PlanCluster cluster;
  cluster.aggregator_cpu_seconds = AggregatorSeconds(size, m);
  cluster.aggregator_cores =
      std::max(kLeastCores, cluster.aggregator_cpu_seconds / (kShareOfRound * m.round));
  cluster.aggregator_memory = AggregatorMemory(size, m, cluster.aggregator_cores);
  cluster.aggregator_disk = (kAggregatorCopies * 4 * size.parameters + size.log_bytes) / kDiskUse;
  cluster.egress_a_day = kSecondsADay / m.round * size.workers * m.result;
  cluster.egress_bits_per_second = 8 * size.workers * m.result / m.round;
  cluster.archiver_threads = std::max(1.0, std::ceil(size.parameters / kReplayedASecond / m.round));
  cluster.archiver_memory = ArchiverMemory(size, m);
  cluster.archiver_disk = kArchiverCopies * 4 * size.parameters / kDiskUse;
  return cluster;
}

std::string ClusterText(const PlanCluster& c) {
  return absl::StrCat(
      absl::StrFormat(
          "aggregator: %.1f cores (%.1f s of processor time a round, within a tenth of it), ",
          c.aggregator_cores, c.aggregator_cpu_seconds),
      Bytes(c.aggregator_memory), " of memory, a volume of ", Bytes(c.aggregator_disk), ", ",
      Bytes(c.egress_a_day), " of egress a day\n",
      absl::StrFormat("archiver: %.0f cores, ", c.archiver_threads), Bytes(c.archiver_memory),
      " of memory, a volume of ", Bytes(c.archiver_disk));
}

nlohmann::json ClusterJson(const PlanCluster& c) {
  return {{"aggregator_cpu_seconds_a_round", c.aggregator_cpu_seconds},
          {"aggregator_cores", c.aggregator_cores},
          {"aggregator_memory_bytes", c.aggregator_memory},
          {"aggregator_volume_bytes", c.aggregator_disk},
          {"archiver_threads", c.archiver_threads},
          {"archiver_memory_bytes", c.archiver_memory},
          {"archiver_volume_bytes", c.archiver_disk}};
}

std::string HelmValues(const PlanCluster& c) {
  return absl::StrCat(
      "# distroctl plan --output helm: requests and sizes, rounded up (docs/tools.md, \"plan\").\n",
      absl::StrFormat("# Egress of the aggregator: %s a day, %.0f Mbit/s on average.\n",
                      Bytes(c.egress_a_day), 1e-6 * c.egress_bits_per_second),
      "resources:\n  requests:\n    cpu: ", Cores(c.aggregator_cores),
      "\n    memory: ", Gibi(c.aggregator_memory),
      "\npersistence:\n  size: ", Gibi(c.aggregator_disk),
      absl::StrFormat("\narchiver:\n  threads: %.0f", c.archiver_threads),
      "\n  resources:\n    requests:\n      cpu: ", Cores(c.archiver_threads),
      "\n      memory: ", Gibi(c.archiver_memory),
      "\n  persistence:\n    size: ", Gibi(c.archiver_disk));
}

}  // namespace distro::tools
