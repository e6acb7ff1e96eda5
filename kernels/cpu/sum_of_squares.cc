#include <algorithm>
#include <vector>

#include "kernels/cpu/vector_backend.h"

namespace distro {
namespace {

// The order of one block row's additions is fixed, so that each waits for the one before. Independent rows fill the wait.
constexpr int kRowsInFlight = 8;

double RowSum(const float* row, int64_t elements) {
  double sum = 0;
  for (int64_t i = 0; i < elements; ++i) sum += double{row[i]} * double{row[i]};
  return sum;
}

void RowSums(const float* rows, int64_t elements, double* sums) {
  double partial[kRowsInFlight] = {};
  for (int64_t i = 0; i < elements; ++i) {
#pragma GCC unroll 8
    for (int r = 0; r < kRowsInFlight; ++r) {
      const double x = rows[r * elements + i];
      partial[r] += x * x;
    }
  }
  std::copy_n(partial, kRowsInFlight, sums);
}

}  // namespace

void RowSumsOfSquaresInterleaved(const MatrixShape& matrix, absl::Span<const float> gradient,
                                 absl::Span<double> sums) {
  const int64_t row = kBlockSide * matrix.cols;
  int64_t at = 0, r = 0;
  for (; at + kRowsInFlight * row <= matrix.elements;
       at += kRowsInFlight * row, r += kRowsInFlight) {
    RowSums(gradient.data() + at, row, sums.data() + r);
  }
  for (; at < matrix.elements; at += row, ++r) {
    sums[r] = RowSum(gradient.data() + at, std::min(row, matrix.elements - at));
  }
}

double SumOfSquaresInterleaved(const MatrixShape& matrix, absl::Span<const float> gradient) {
  std::vector<double> sums(matrix.BlocksDown());
  RowSumsOfSquaresInterleaved(matrix, gradient, absl::MakeSpan(sums));
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace distro
