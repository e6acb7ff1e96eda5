// A learning curve: held-out loss, sent and received bytes of a run at each evaluation. As CSV for
// programs and as lines for people. Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace distro::worker {

struct CurvePoint {
  uint64_t round = 0;        // the parameters before it were evaluated
  uint64_t tokens = 0;       // of all workers
  double held_out_loss = 0;  // nats a token
  uint64_t sent_bytes = 0;   // of one worker, so far
  uint64_t received_bytes = 0;
};

class Curve {
 public:
  // Starts the curve of a run of `rounds` rounds, which begins now.
  explicit Curve(uint64_t rounds);

  // Prints the point; rounds ascend.
  void Add(const CurvePoint& point);
  int points() const { return static_cast<int>(points_.size()); }
  const CurvePoint& point(int i) const { return points_[i].point; }

  // Prints progress and estimated end of the run to standard error, at most every ten seconds.
  void Progress(uint64_t round);

  // round,tokens,held_out_loss,sent_bytes,received_bytes,seconds
  absl::Status WriteCsv(const std::string& path) const;

 private:
  struct TimedPoint {
    CurvePoint point;
    double seconds = 0;
  };
  const uint64_t rounds_;
  const absl::Time start_;
  absl::Time shown_;
  std::vector<TimedPoint> points_;
};

}  // namespace distro::worker
