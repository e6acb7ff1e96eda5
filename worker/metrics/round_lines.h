// One JSON line a round of what a worker did (docs/metrics.md, "A line a round"), in a file that a
// process which is killed leaves readable.
//
//   {"time": 1763728000.125, "run": "demo-1a2b3c4d", "round": 41, "rounds": 400, "loss": 3.25,
//    "learning_rate": 0.0004, "gradient_norm": 0.5, "tokens": 512, "sent_bytes": 4096,
//    "received_bytes": 8192, "updates_excluded": 0, "seconds": {"idle": 0, ...}}
//
// Not thread-safe: of the training thread.
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

// Of the file, and of the one before it.
inline constexpr uint64_t kMaxRoundLineBytes = 64 << 20;

// The line of the round that `now` has applied and `before` has not; without a line feed. What
// grows is given as the difference of both. held_out_loss is there where it was evaluated since.
std::string RoundLine(const TrainSummary& now, const TrainSummary& before, absl::Time time);

class RoundLines {
 public:
  // Opens or goes on with `path`. `log` and `clock` are borrowed. The statuses of LineFile::Open.
  static absl::StatusOr<std::unique_ptr<RoundLines>> Open(const std::string& path, Log* log,
                                                          const Clock* clock);

  // Called with every reading: writes a line when a round was applied since the last one. A line
  // that cannot be written is lost, and the log says why.
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
