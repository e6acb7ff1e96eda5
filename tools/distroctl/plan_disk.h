// Plans the disk of the aggregator of a run: bytes, as a file system with blocks of 4 KiB counts
// them, and files. Pure. Formulas: docs/tools.md, "plan"; files: docs/files.md.
#pragma once

#include <cstdint>

namespace distro::tools {

struct PlanMethod;

// At the end of the run.
struct PlanDisk {
  double header = 0;  // bytes of a round's header, at most
  double bytes = 0;   // with an archiver's snapshots
  double files = 0;   // at most
  double bytes_without_archiver = 0;
  double files_without_archiver = 0;

  double log_bytes = 0;  // of `bytes`: besides models and results
};

struct PlanLog {
  double parameters = 0;
  uint64_t segments = 1;
  uint64_t header_bytes = 0;  // LargestHeaderBytes
  uint64_t rounds = 1;
};

PlanDisk DiskOf(const PlanLog& log, const PlanMethod& method);

}  // namespace distro::tools
