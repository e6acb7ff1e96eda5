// Prints the progress of training: one live line on a terminal, plain lines otherwise
// (docs/worker.md). Not thread-safe: the training thread owns it.
#pragma once

#include <cstdio>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/train/summary.h"

namespace distro::worker {

// Readings of the moment a round was applied.
struct ProgressReading {
  uint64_t round = 0;          // rounds applied so far, of the run
  uint64_t rounds = 0;         // of the run
  std::optional<double> loss;  // not set before the first own step
  std::optional<double> evaluation_loss;
  uint64_t tokens = 0;  // of this process
  uint64_t sent_bytes = 0;
  uint64_t received_bytes = 0;
  absl::Duration wait;         // on the network, so far
  std::string uncounted = {};  // OwnRounds::What
};

ProgressReading ReadingOf(const TrainSummary& summary);

// "round 12/60  loss 3.2101  8500 tokens/s ...": rates and the time left are since construction,
// and since the first reading.
class ProgressText {
 public:
  explicit ProgressText(const Clock* clock) : clock_(clock), start_(clock->MonotonicNow()) {}
  std::string Line(const ProgressReading& reading);

 private:
  const Clock* const clock_;
  const absl::Duration start_;
  std::optional<uint64_t> first_round_;
};

class Progress {
 public:
  // Writes to `out`. `live` redraws one line at most every 200 ms; otherwise a line is printed at
  // most every 10 s.
  Progress(std::FILE* out, bool live, const Clock* clock);

  void Update(const ProgressReading& reading);
  // Ends the live line, so that other output begins on its own.
  void Finish();

 private:
  std::FILE* const out_;
  const bool live_;
  const Clock* const clock_;
  ProgressText text_;
  std::optional<absl::Duration> last_shown_;
  bool line_open_ = false;
};

}  // namespace distro::worker
