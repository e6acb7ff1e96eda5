// A curve over rounds in bounded memory: when it is full, neighbours are merged into their mean, so
// an old run is shown coarser, never cut off. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace distro::server {

class LossCurve {
 public:
  // The mean of consecutive values.
  struct Point {
    uint64_t round = 0;  // of the last of them
    double value = 0;
  };

  // At most `max_points`, which is even and above 0.
  explicit LossCurve(size_t max_points) : max_points_(max_points) {}

  // Rounds ascend; a value that is not finite is left out.
  void Add(uint64_t round, double value);
  // Ascending; the last one may be of fewer values than the others.
  std::vector<Point> Points() const;
  // Values that a point stands for: 1, 2, 4, ...
  uint64_t values_per_point() const { return values_per_point_; }

 private:
  void Merge();

  const size_t max_points_;
  uint64_t values_per_point_ = 1;
  std::vector<Point> points_;
  // Of the point that is being made.
  uint64_t pending_ = 0;
  uint64_t last_round_ = 0;
  double sum_ = 0;
};

}  // namespace distro::server
