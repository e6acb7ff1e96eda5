#include "common/base/clock.h"

#include <chrono>

#include "absl/time/clock.h"

namespace distro {
namespace {

class RealClock final : public Clock {
 public:
  absl::Duration MonotonicNow() const override {
    return absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
  }
  absl::Time WallNow() const override { return absl::Now(); }
};

}  // namespace

Clock* Clock::Real() {
  static RealClock clock;
  return &clock;
}

}  // namespace distro
