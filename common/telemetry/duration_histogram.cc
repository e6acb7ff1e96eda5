#include "common/telemetry/duration_histogram.h"

#include <algorithm>

namespace distro {

void AddDuration(absl::Duration duration, v1::DurationHistogram* histogram) {
  const double seconds = absl::ToDoubleSeconds(duration);
  if (histogram->buckets_size() == 0) histogram->mutable_buckets()->Resize(kDurationBuckets, 0);
  const auto bucket = std::ranges::lower_bound(kDurationBounds, seconds) - kDurationBounds.begin();
  histogram->set_buckets(static_cast<int>(bucket),
                         histogram->buckets(static_cast<int>(bucket)) + 1);
  histogram->set_sum_seconds(histogram->sum_seconds() + seconds);
}

}  // namespace distro
