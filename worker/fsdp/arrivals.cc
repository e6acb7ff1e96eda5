#include "worker/fsdp/arrivals.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace distro::worker {

absl::Status Arrivals::NotDone(absl::string_view operation, int64_t number, int rank,
                               absl::Duration watchdog) const {
  std::vector<std::string> absent;
  for (size_t other = 0; other < arrived_.size(); ++other) {
    if (arrived_[other] < number) absent.push_back(absl::StrCat("rank ", other));
  }
  const std::string who = absent.empty()
                              ? absl::StrCat("rank ", rank, " did not finish")
                              : absl::StrCat(absl::StrJoin(absent, " and "), " did not come");
  return absl::DeadlineExceededError(
      absl::StrCat(operation, ": ", who, " within ", absl::FormatDuration(watchdog)));
}

}  // namespace distro::worker
