// The transfers that a rank has started and not waited for, with the data that Wait needs. For
// implementations of Communicator. Not thread-safe.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "worker/fsdp/communicator.h"

namespace distro::worker {

template <typename Operation>
class Transfers {
 public:
  // The number of the new transfer, from 1; 0 is a Transfer that was not started.
  Transfer Add(Operation operation) {
    operations_.emplace(++last_, std::move(operation));
    return Transfer{last_};
  }
  // Internal: the transfer was not started here, or was waited for already.
  absl::StatusOr<Operation> Take(Transfer transfer) {
    auto found = operations_.extract(transfer.number);
    if (!found.empty()) return std::move(found.mapped());
    return absl::InternalError(absl::StrCat("transfer ", transfer.number,
                                            " is not under way: it was not started here, ",
                                            "or was waited for already"));
  }

 private:
  std::map<int64_t, Operation> operations_;
  int64_t last_ = 0;
};

}  // namespace distro::worker
