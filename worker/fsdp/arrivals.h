// Counts the ranks that have arrived at each collective operation. The ranks of a group call the
// same operations in the same order, so a number identifies an operation. For watchdogs that
// observe operations from outside (NCCL). Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace distro::worker {

class Arrivals {
 public:
  explicit Arrivals(int ranks) : arrived_(ranks, 0) {}

  // The rank arrives at its next operation; returns its number, from 1.
  int64_t Arrive(int rank) { return ++arrived_[rank]; }

  // The status of an operation at which `rank` has arrived and that exceeded the watchdog's time:
  // DeadlineExceeded, with the operation and the ranks that did not arrive, or `rank` if all have.
  absl::Status NotDone(absl::string_view operation, int64_t number, int rank,
                       absl::Duration watchdog) const;

 private:
  std::vector<int64_t> arrived_;  // [ranks], operations
};

}  // namespace distro::worker
