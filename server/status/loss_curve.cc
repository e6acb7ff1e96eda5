#include "server/status/loss_curve.h"

#include <cmath>

namespace distro::server {

void LossCurve::Add(uint64_t round, double value) {
  if (!std::isfinite(value)) return;
  sum_ += value;
  last_round_ = round;
  if (++pending_ < values_per_point_) return;
  points_.push_back({last_round_, sum_ / static_cast<double>(pending_)});
  pending_ = 0;
  sum_ = 0;
  if (points_.size() == max_points_) Merge();
}

void LossCurve::Merge() {
  for (size_t i = 0; i < points_.size() / 2; ++i) {
    const Point& last = points_[2 * i + 1];
    points_[i] = {last.round, (points_[2 * i].value + last.value) / 2};
  }
  points_.resize(points_.size() / 2);
  values_per_point_ *= 2;
}

std::vector<LossCurve::Point> LossCurve::Points() const {
  std::vector<Point> points = points_;
  if (pending_ > 0) points.push_back({last_round_, sum_ / static_cast<double>(pending_)});
  return points;
}

}  // namespace distro::server
