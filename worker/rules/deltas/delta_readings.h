// Statistics of a worker's deltas rounds, for display (docs/metrics.md, "Worker"). Plain data.
#pragma once

#include <cstdint>
#include <optional>

namespace distro::worker {

// Shares are 0 to 1, and not set while the total is 0.
struct DeltaReadings {
  uint64_t inner_steps = 0;  // taken by this process
  // Of the last update: the norm of its inner steps' outcome over the whole model; the share of the
  // error buffer's sum of squares that the update contains; the share of its blocks (without empty
  // records) whose scale code is the cap of their tensor.
  std::optional<double> delta_norm;
  std::optional<double> energy_kept;
  std::optional<double> capped;
  // Of the last included update: the share of its positions in included segments that the result
  // did not contain.
  std::optional<double> cancelled;

  bool operator==(const DeltaReadings&) const = default;
};

// Sums over a rank's blocks from which readings are computed; those of all ranks are added.
struct DeltaSums {
  uint64_t inner_steps = 0;  // the same at every rank
  // Of the last update. Sums of squares: of the steps' outcome, of the buffer, of the update.
  struct Update {
    double done = 0;
    double buffer = 0;
    double said = 0;
    int64_t records = 0;  // non-empty
    int64_t capped = 0;
  };
  std::optional<Update> update;
  // Of the last feedback, positions in included segments.
  int64_t sent = 0;
  int64_t returned = 0;

  // Adds the sums of another rank, which has taken the same steps, updates and feedback.
  void Add(const DeltaSums& other);
};

// Readings from the sums of all ranks. The last bits of norm and shares depend on the number of
// ranks.
DeltaReadings ReadingsOf(const DeltaSums& sums);

}  // namespace distro::worker
