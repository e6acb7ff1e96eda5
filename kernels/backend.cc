#include "kernels/backend.h"

#include <algorithm>

namespace distro {

void Backend::RowSumsOfSquares(const MatrixShape& matrix, absl::Span<const float> gradient,
                               absl::Span<double> sums) {
  const int64_t row = kBlockSide * matrix.cols;
  for (int64_t r = 0; r < matrix.BlocksDown(); ++r) {
    const int64_t elements = std::min(row, matrix.elements - r * row);
    const int64_t rows = std::min<int64_t>(kBlockSide, matrix.rows - r * kBlockSide);
    sums[r] = SumOfSquares({.rows = rows, .cols = matrix.cols, .elements = elements},
                           gradient.subspan(r * row, elements));
  }
}

}  // namespace distro
