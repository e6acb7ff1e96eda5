#include "worker/model/peak_flops.h"

#include <algorithm>
#include <cmath>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

constexpr int kProducts = 8;  // the first ones warm up

at::Tensor Ones(const PeakFlopsProbe& probe) {
  return at::zeros({probe.size, probe.size}, at::TensorOptions(probe.type).device(probe.device))
      .fill_(1);
}

}  // namespace

absl::StatusOr<double> MeasurePeakFlops(const PeakFlopsProbe& probe) {
  return CatchTorch("matrix product", [&]() -> absl::StatusOr<double> {
    const at::NoGradGuard no_grad;
    const at::Tensor left = Ones(probe), right = Ones(probe);
    absl::Duration fastest = absl::InfiniteDuration();
    for (int i = 0; i < kProducts; ++i) {
      const absl::Duration begin = Clock::Real()->MonotonicNow();
      at::linear(left, right);
      if (probe.finish) DISTRO_RETURN_IF_ERROR(probe.finish());
      fastest = std::min(fastest, Clock::Real()->MonotonicNow() - begin);
    }
    return 2.0 * std::pow(static_cast<double>(probe.size), 3) / absl::ToDoubleSeconds(fastest);
  });
}

}  // namespace distro::worker
