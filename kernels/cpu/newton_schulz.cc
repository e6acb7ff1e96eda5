#include "kernels/cpu/newton_schulz.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/block_site.h"

namespace distro {
namespace {

constexpr int64_t kTransposeTile = 16;

int64_t RoundUp(int64_t n, int64_t multiple) { return (n + multiple - 1) / multiple * multiple; }

// out [cols, out_row] <- from [rows, from_row] transposed, tile by tile for cache locality.
void Transpose(const float* from, int64_t rows, int64_t cols, int64_t from_row, int64_t out_row,
               float* out) {
  for (int64_t r = 0; r < rows; r += kTransposeTile) {
    for (int64_t c = 0; c < cols; c += kTransposeTile) {
      for (int64_t i = r; i < std::min(r + kTransposeTile, rows); ++i) {
        for (int64_t j = c; j < std::min(c + kTransposeTile, cols); ++j)
          out[j * out_row + i] = from[i * from_row + j];
      }
    }
  }
}

// Copies the elements above the diagonal to those below.
void Mirror(int64_t n, std::vector<float>* square) {
  for (int64_t r = 0; r < n; ++r) {
    for (int64_t c = 0; c < r; ++c) (*square)[r * n + c] = (*square)[c * n + r];
  }
}

double Norm(absl::Span<const float> u) {
  double squares = 0;
  for (const float x : u) squares += double{x} * double{x};
  return std::sqrt(squares);
}

}  // namespace

void NewtonSchulz(const MatrixKernels& kernels, int64_t rows, int64_t cols, int steps,
                  absl::Span<float> u) {
  CheckShape(static_cast<int64_t>(u.size()) == rows * cols, "the array is not the matrix's size");
  const double norm = Norm(u);
  if (norm == 0) return;
  const auto scale = static_cast<float>(1 / norm);
  for (float& x : u) x *= scale;
  // Padded with zeros, which change no product.
  const bool tall = rows > cols;
  const int64_t r = RoundUp(std::min(rows, cols), kernels.alignment);
  const int64_t c = RoundUp(std::max(rows, cols), kernels.alignment);
  std::vector<float> x(r * c), next(r * c), transposed(c * r), gram(r * r), factor(r * r);
  if (tall) {
    Transpose(u.data(), rows, cols, cols, c, x.data());
  } else {
    for (int64_t i = 0; i < rows; ++i) std::copy_n(u.data() + i * cols, cols, x.data() + i * c);
  }
  for (int step = 0; step < steps; ++step) {
    Transpose(x.data(), r, c, c, r, transposed.data());
    kernels.product({.rows = r, .cols = r, .depth = c, .symmetric = true}, x.data(),
                    transposed.data(), {.product = 1, .addend = 0}, nullptr, gram.data());
    Mirror(r, &gram);
    kernels.product({.rows = r, .cols = r, .depth = r, .symmetric = true}, gram.data(), gram.data(),
                    {.product = kNewtonSchulzQuintic, .addend = kNewtonSchulzCubic}, gram.data(),
                    factor.data());
    Mirror(r, &factor);
    kernels.product({.rows = r, .cols = c, .depth = r, .symmetric = false}, factor.data(), x.data(),
                    {.product = 1, .addend = kNewtonSchulzLinear}, x.data(), next.data());
    std::swap(x, next);
  }
  if (tall) {
    Transpose(x.data(), cols, rows, c, cols, u.data());
  } else {
    for (int64_t i = 0; i < rows; ++i) std::copy_n(x.data() + i * c, cols, u.data() + i * cols);
  }
}

}  // namespace distro
