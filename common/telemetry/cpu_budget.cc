#include "common/telemetry/cpu_budget.h"

#include <algorithm>

namespace distro {

absl::Duration CpuBudget::WaitAt(absl::Duration now) {
  if (now > counted_until_) left_ = std::min(burst_, left_ + (now - counted_until_) * share_);
  counted_until_ = now;
  return left_ > absl::ZeroDuration() ? absl::ZeroDuration()
                                      : std::max(-left_ / share_, absl::Milliseconds(1));
}

}  // namespace distro
