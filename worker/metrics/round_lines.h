// One JSON line per round that a worker applied (docs/metrics.md, "A line a round"). The file stays
// readable if the process is killed.
//
//   {"time": 1763728000.125, "run": "demo-1a2b3c4d", "round": 41, "rounds": 400, "loss": 3.25,
//    "learning_rate": 0.0004, "gradient_norm": 0.5, "tokens": 512, "sent_bytes": 4096,
//    "received_bytes": 8192, "updates_excluded": 0, "seconds": {"idle": 0, ...}}
//
// Not thread-safe: used by the training thread.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/line_file.h"
#include "common/base/log.h"
#include "common/base/reason_log.h"
#include "worker/train/summary.h"

namespace distro::worker {

// Limit of the file, and of its predecessor.
inline constexpr uint64_t kMaxRoundLineBytes = 64 << 20;

// The line of the round that `now` has applied and `before` has not, without a line feed. Counters
// are given as the difference of the two. Has held_out_loss if it was evaluated since `before`.
std::string RoundLine(const TrainSummary& now, const TrainSummary& before, absl::Time time);

class RoundLines {
 public:
  // Opens `path` and appends to it. `log` and `clock` are borrowed. The statuses of LineFile::Open.
  static absl::StatusOr<std::unique_ptr<RoundLines>> Open(const std::string& path, Log* log,
                                                          const Clock* clock);

  // Call with every reading: writes a line if a round was applied since the last one. A line that
  // cannot be written is lost; the log says why.
  void Add(const TrainSummary& reading);

 private:
  RoundLines(std::unique_ptr<LineFile> file, Log* log, const Clock* clock)
      : file_(std::move(file)),
        clock_(clock),
        failures_("round not written to metrics_file", log, clock) {}

  const std::unique_ptr<LineFile> file_;
  const Clock* const clock_;
  ReasonLog failures_;
  TrainSummary before_;
};

}  // namespace distro::worker
