// One JSON line per replayed round (docs/metrics.md, "A line a round"). The file stays readable if
// the process is killed.
//
//   {"time": 1763728000.125, "run": "demo-1a2b3c4d", "round": 41, "rounds": 400, "epoch": 184,
//    "members": 3, "included": 2, "received_bytes": 8192, "lag_rounds": 0,
//    "state_hash": "0123456789abcdef", "seconds": {"wait": 0.5, "apply": 0.01, ...}}
//
// Not thread-safe: used by the replaying thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/line_file.h"
#include "common/base/log.h"
#include "common/base/reason_log.h"
#include "distro/v1/round.pb.h"
#include "tools/archiver/metrics.h"

namespace distro::tools {

// Limit of the file, and of its predecessor.
inline constexpr uint64_t kMaxRoundLineBytes = 64 << 20;

// The fields of a line that are not in the round's header.
struct RoundReading {
  std::string run_id;
  uint64_t rounds = 0;                               // of the run
  uint64_t lag_rounds = 0;                           // behind the aggregator, after this round
  uint64_t state_hash = 0;                           // of the parameters after the round
  std::array<double, kArchiverPhases> seconds = {};  // since the previous round
};

// Without a line feed.
std::string RoundLine(const v1::RoundHeader& header, const RoundReading& reading, absl::Time time);

class RoundLines {
 public:
  // Opens `path` and appends to it. `log` and `clock` are borrowed. The statuses of LineFile::Open.
  static absl::StatusOr<std::unique_ptr<RoundLines>> Open(const std::string& path, Log* log,
                                                          const Clock* clock);

  // A line that cannot be written is lost; the log says why. `reading.seconds` count from the start
  // of the process; the line has the difference from the previous call.
  void Add(const v1::RoundHeader& header, RoundReading reading);

 private:
  RoundLines(std::unique_ptr<LineFile> file, Log* log, const Clock* clock)
      : file_(std::move(file)),
        clock_(clock),
        failures_("round not written to metrics_file", log, clock) {}

  const std::unique_ptr<LineFile> file_;
  const Clock* const clock_;
  ReasonLog failures_;
  std::array<double, kArchiverPhases> seconds_ = {};
};

}  // namespace distro::tools
