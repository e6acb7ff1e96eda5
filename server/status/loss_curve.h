// A curve over rounds in bounded memory: when it is full, pairs of neighbours are merged into their
// mean, so that a long run is shown coarser but whole. Not thread-safe.
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

  // Requires ascending rounds. Ignores a value that is not finite.
  void Add(uint64_t round, double value);
  // Ascending; the last one may be of fewer values than the others.
  std::vector<Point> Points() const;
  // Number of values per point: 1, 2, 4, ...
  uint64_t values_per_point() const { return values_per_point_; }

 private:
  void Merge();

  const size_t max_points_;
  uint64_t values_per_point_ = 1;
  std::vector<Point> points_;
  // Values of the incomplete point.
  uint64_t pending_ = 0;
  uint64_t last_round_ = 0;
  double sum_ = 0;
};

}  // namespace distro::server
