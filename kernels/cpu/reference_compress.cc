#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "kernels/basis.h"
#include "kernels/cpu/reference.h"

namespace distro::reference {
namespace {

// Orders as |x| does, and puts NaN above infinity, so that every input has one answer.
uint32_t Magnitude(float x) { return std::bit_cast<uint32_t>(x) & 0x7FFFFFFF; }

}  // namespace

void Momentum(const BlockSite& site, const CompressOptions& options,
              absl::Span<const float> gradient, absl::Span<float> momentum,
              float x[kBlockElements]) {
  std::fill_n(x, kBlockElements, 0.0f);
  for (int r = 0; r < site.rows; ++r) {
    const int cols = r + 1 == site.rows ? site.last_cols : site.cols;
    for (int c = 0; c < cols; ++c) {
      const int64_t i = site.offset + r * site.stride + c;
      momentum[i] =
          options.beta * momentum[i] + options.eta * (gradient[i] * options.gradient_scale);
      x[r * kBlockSide + c] = momentum[i];
    }
  }
}

void ForwardTransform(const float x[kBlockElements], float c[kBlockElements]) {
  double t[kBlockSide][kBlockSide];  // [vertical frequency][column]
  for (int h = 0; h < kBlockSide; ++h) {
    for (int q = 0; q < kBlockSide; ++q) {
      t[h][q] = 0;
      for (int r = 0; r < kBlockSide; ++r)
        t[h][q] += kBasisF64.at[h][r] * double{x[r * kBlockSide + q]};
    }
  }
  for (int h = 0; h < kBlockSide; ++h) {
    for (int w = 0; w < kBlockSide; ++w) {
      double sum = 0;
      for (int q = 0; q < kBlockSide; ++q) sum += t[h][q] * kBasisF64.at[w][q];
      c[h * kBlockSide + w] = static_cast<float>(sum);
    }
  }
}

void TopK(const float c[kBlockElements], int k, uint16_t* positions, float* values) {
  uint16_t order[kBlockElements];
  std::iota(order, order + kBlockElements, uint16_t{0});
  std::stable_sort(order, order + kBlockElements,
                   [c](uint16_t a, uint16_t b) { return Magnitude(c[a]) > Magnitude(c[b]); });
  std::sort(order, order + k);
  for (int i = 0; i < k; ++i) {
    positions[i] = order[i];
    values[i] = c[order[i]];
  }
}

}  // namespace distro::reference
