#include "worker/model/peak_flops.h"

#include <algorithm>

#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/model/torch.h"

namespace distro::worker {
namespace {

constexpr int64_t kSize = 512;
constexpr int kProducts = 8;  // the first ones warm up

at::Tensor Ones() {
  at::Tensor matrix = at::empty({kSize, kSize});
  std::fill_n(matrix.data_ptr<float>(), kSize * kSize, 1.0f);
  return matrix;
}

}  // namespace

absl::StatusOr<double> MeasurePeakFlops() {
  return CatchTorch("matrix product", []() -> absl::StatusOr<double> {
    const at::NoGradGuard no_grad;
    const at::Tensor left = Ones();
    const at::Tensor right = Ones();
    absl::Duration fastest = absl::InfiniteDuration();
    for (int i = 0; i < kProducts; ++i) {
      const absl::Duration begin = Clock::Real()->MonotonicNow();
      at::linear(left, right);
      fastest = std::min(fastest, Clock::Real()->MonotonicNow() - begin);
    }
    return 2.0 * kSize * kSize * kSize / absl::ToDoubleSeconds(fastest);
  });
}

}  // namespace distro::worker
