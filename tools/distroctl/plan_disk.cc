#include "tools/distroctl/plan_disk.h"

#include <algorithm>
#include <cmath>

#include "server/log/record_format.h"
#include "tools/distroctl/plan_report.h"

namespace distro::tools {
namespace {

constexpr double kBlock = 4096;  // of a file system
// The lock, the epoch, the run, its companions, folders, four models, a temporary file.
constexpr double kOtherFiles = 32;

}  // namespace

PlanDisk DiskOf(const PlanLog& log, const PlanMethod& m) {
  PlanDisk disk;
  disk.header = static_cast<double>(log.header_bytes);
  const double model = 4 * log.parameters;
  const auto rounds = static_cast<double>(log.rounds);
  const double tail =
      disk.header + static_cast<double>(server::kRecordPrefixBytes + server::kRecordFooterBytes +
                                        log.segments * server::kRecordTableEntryBytes);
  // The initial model, two snapshots, one being uploaded, and the rounds after the older snapshot:
  // results as large as the model lie between two snapshots. A result is not smaller than an
  // update.
  const double kept = std::min(rounds, std::ceil(2 * model / m.update) + 1);
  const double packed = rounds - kept;
  const double packs = std::ceil(
      packed * std::max(1.0 / server::kPackRounds, disk.header / server::kPackHeaderBytes));
  disk.log_bytes = packed * (disk.header + server::kRecordTableEntryBytes) + packs * kBlock +
                   kept * (tail + kBlock);
  disk.bytes = 4 * model + 2 * model + disk.log_bytes;
  disk.files = kOtherFiles + packs + kept;
  disk.bytes_without_archiver = model + rounds * kBlock * std::ceil((m.result + tail) / kBlock);
  disk.files_without_archiver = kOtherFiles + rounds;
  return disk;
}

}  // namespace distro::tools
