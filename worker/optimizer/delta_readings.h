// Statistics of a worker's rounds of deltas, for people (docs/metrics.md, "Worker"). Plain data.
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

// What the readings are made of: sums over a rank's blocks, of which those of all ranks add up.
struct DeltaSums {
  uint64_t inner_steps = 0;  // the same at every rank
  // Of the last update. Sums of squares: of what the steps did, of the buffer, of what is said.
  struct Update {
    double done = 0;
    double buffer = 0;
    double said = 0;
    int64_t records = 0;  // that are not empty
    int64_t capped = 0;
  };
  std::optional<Update> update;
  // Of the last feedback, positions in included segments.
  int64_t sent = 0;
  int64_t returned = 0;

  // Those of another rank, which has taken the same steps, updates and feedback.
  void Add(const DeltaSums& other);
};

// Of the sums of all ranks. The last bits of norm and share depend on how many ranks there were.
DeltaReadings ReadingsOf(const DeltaSums& sums);

}  // namespace distro::worker
