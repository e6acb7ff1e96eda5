// Counts the ranks that have come to each collective operation: the ranks of a group call the same
// operations in the same order, so an operation is known by its number. For watchdogs that see
// operations from outside (NCCL). Not thread-safe.
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

  // The rank comes to its next operation; its number, from 1.
  int64_t Arrive(int rank) { return ++arrived_[rank]; }

  // What an operation that `rank` has come to, and that is not done within the watchdog's time,
  // ends with: DeadlineExceeded names the operation and the ranks that did not come, or `rank` when
  // all have.
  absl::Status NotDone(absl::string_view operation, int64_t number, int rank,
                       absl::Duration watchdog) const;

 private:
  std::vector<int64_t> arrived_;  // [ranks], operations
};

}  // namespace distro::worker
