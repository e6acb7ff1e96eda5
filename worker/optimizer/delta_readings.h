// What rounds of deltas did to a worker, for people (docs/metrics.md, "Worker"). Plain data.
#pragma once

#include <cstdint>
#include <optional>

namespace distro::worker {

// Shares are 0 to 1, and not set while there is nothing to have a share of.
struct DeltaReadings {
  uint64_t inner_steps = 0;  // that this process took
  // Of the last update: the norm of what its inner steps did, over the whole model; the share of
  // the error buffer's sum of squares that it says; the share of its blocks (empty records are
  // none) whose scale code is the cap of their tensor.
  std::optional<double> delta_norm;
  std::optional<double> energy_kept;
  std::optional<double> capped;
  // Of the last update that was included: the share of its positions in included segments that did
  // not come back.
  std::optional<double> cancelled;

  bool operator==(const DeltaReadings&) const = default;
};

}  // namespace distro::worker
