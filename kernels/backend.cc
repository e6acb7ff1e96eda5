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

void Backend::EnqueueApply(const MatrixShape& matrix, BlockRange blocks,
                           const UpdateOptions& options, const VotesView& votes,
                           absl::Span<float> parameters, uint32_t* invalid) {
  if (!Apply(matrix, blocks, options, votes, parameters).ok()) *invalid = 0;
}

void Backend::EnqueueStateHash(uint64_t first_index, absl::Span<const float> parameters,
                               uint64_t* sum) {
  *sum += StateHash(first_index, parameters);
}

int64_t Backend::RowSumsWorkspace(const MatrixShape&) const { return 0; }

void Backend::EnqueueRowSums(const MatrixShape& matrix, absl::Span<const float> gradient,
                             double* /*workspace*/, absl::Span<double> sums) {
  RowSumsOfSquares(matrix, gradient, sums);
}

}  // namespace distro
