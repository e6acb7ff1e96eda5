// Compiled with -ffp-contract=off; InverseInteger, Update, Subtract and Lookahead are called inside
// a DefaultFloatEnvironment.
#include "kernels/cpu/reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "common/base/random.h"
#include "kernels/basis.h"

namespace distro::reference {
namespace {

// Orders as |x| does, and puts NaN above infinity, so that every input has one answer.
uint32_t Magnitude(float x) { return std::bit_cast<uint32_t>(x) & 0x7FFFFFFF; }

}  // namespace

void Momentum(const BlockSite& site, const SignCompressOptions& options,
              absl::Span<const float> gradient, absl::Span<float> momentum,
              float x[kBlockElements]) {
  std::fill_n(x, kBlockElements, 0.0f);
  for (int r = 0; r < site.rows; ++r) {
    const int cols = site.ColsOfRow(r);
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

void InverseTransform(int k, const uint16_t* positions, const float* values,
                      float x[kBlockElements]) {
  double t[kBlockSide][kBlockSide] = {};  // [vertical frequency][column]
  for (int i = 0; i < k; ++i) {
    const int h = positions[i] / kBlockSide;
    const int w = positions[i] % kBlockSide;
    for (int q = 0; q < kBlockSide; ++q) t[h][q] += double{values[i]} * kBasisF64.at[w][q];
  }
  for (int r = 0; r < kBlockSide; ++r) {
    for (int q = 0; q < kBlockSide; ++q) {
      double sum = 0;
      for (int h = 0; h < kBlockSide; ++h) sum += kBasisF64.at[h][r] * t[h][q];
      x[r * kBlockSide + q] = static_cast<float>(sum);
    }
  }
}

void InverseInteger(const BlockVotes& votes, int32_t u[kBlockElements]) {
  int32_t v[kBlockSide][kBlockSide] = {};
  for (int i = 0; i < votes.count; ++i) {
    v[votes.positions[i] / kBlockSide][votes.positions[i] % kBlockSide] =
        votes.values[i] * (1 << votes.shift);
  }
  int32_t t[kBlockSide][kBlockSide];  // [vertical frequency][column]
  for (int a = 0; a < kBlockSide; ++a) {
    for (int c = 0; c < kBlockSide; ++c) {
      int32_t sum = 32;
      for (int b = 0; b < kBlockSide; ++b) sum += v[a][b] * kBasisQ13.at[b][c];
      t[a][c] = sum >> 6;
    }
  }
  for (int r = 0; r < kBlockSide; ++r) {
    for (int c = 0; c < kBlockSide; ++c) {
      int32_t sum = 0;
      for (int a = 0; a < kBlockSide; ++a) sum += kBasisQ13.at[a][r] * t[a][c];
      u[r * kBlockSide + c] = sum;
    }
  }
}

void Update(const BlockSite& site, const SignApplyOptions& options, const int32_t u[kBlockElements],
            absl::Span<float> parameters) {
  for (int r = 0; r < site.rows; ++r) {
    const int cols = site.ColsOfRow(r);
    for (int c = 0; c < cols; ++c) {
      const int32_t sum = u[r * kBlockSide + c];
      const float direction = static_cast<float>((sum > 0) - (sum < 0));
      float& p = parameters[site.offset + r * site.stride + c];
      const float decay = p * options.eta_lambda;
      const float decayed = p - decay;
      p = decayed - options.eta * direction;
    }
  }
}

void Subtract(const BlockSite& site, float step, const int32_t u[kBlockElements],
              absl::Span<float> parameters) {
  for (int r = 0; r < site.rows; ++r) {
    const int cols = site.ColsOfRow(r);
    for (int c = 0; c < cols; ++c) {
      const float move = static_cast<float>(u[r * kBlockSide + c]) * step;
      float& p = parameters[site.offset + r * site.stride + c];
      p = p - move;
    }
  }
}

void Lookahead(float eta, absl::Span<const float> parameters, absl::Span<const float> momentum,
               absl::Span<float> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const float direction = static_cast<float>((momentum[i] > 0) - (momentum[i] < 0));
    const float step = eta * direction;
    out[i] = parameters[i] - step;
  }
}

uint64_t StateHash(uint64_t first_index, absl::Span<const float> parameters) {
  uint64_t sum = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    sum += Mix(((first_index + i) << 32) + std::bit_cast<uint32_t>(parameters[i]) + kGoldenGamma);
  }
  return sum;
}

void RowSums(const MatrixShape& matrix, absl::Span<const float> gradient, absl::Span<double> sums) {
  const int64_t step = kBlockSide * matrix.cols;
  for (size_t row = 0; row < sums.size(); ++row) {
    const int64_t begin = static_cast<int64_t>(row) * step;
    sums[row] = 0;
    for (int64_t i = begin; i < std::min(begin + step, matrix.elements); ++i) {
      sums[row] += double{gradient[i]} * double{gradient[i]};
    }
  }
}

}  // namespace distro::reference
