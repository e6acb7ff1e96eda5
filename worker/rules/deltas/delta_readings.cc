#include "worker/rules/deltas/delta_readings.h"

#include <algorithm>
#include <cmath>

namespace distro::worker {
namespace {

// part / whole, at most 1: rounding of scales can make a part larger than its whole.
std::optional<double> Share(double part, double whole) {
  if (whole == 0) return std::nullopt;
  return std::min(part / whole, 1.0);
}
std::optional<double> Share(int64_t part, int64_t whole) {
  return Share(static_cast<double>(part), static_cast<double>(whole));
}

}  // namespace

void DeltaSums::Add(const DeltaSums& other) {
  sent += other.sent;
  returned += other.returned;
  if (!update.has_value() || !other.update.has_value()) return;
  update->done += other.update->done;
  update->buffer += other.update->buffer;
  update->said += other.update->said;
  update->records += other.update->records;
  update->capped += other.update->capped;
}

DeltaReadings ReadingsOf(const DeltaSums& sums) {
  DeltaReadings readings;
  readings.inner_steps = sums.inner_steps;
  readings.cancelled = Share(sums.sent - sums.returned, sums.sent);
  if (!sums.update.has_value()) return readings;
  readings.delta_norm = std::sqrt(sums.update->done);
  readings.energy_kept = Share(sums.update->said, sums.update->buffer);
  readings.capped = Share(sums.update->capped, sums.update->records);
  return readings;
}

}  // namespace distro::worker
