// Sums of squares of the block rows of a matrix, in f64, each in one fixed order.
//
//   row_sums[y] = sum over the elements of block row y of g^2
//       f32 [elements] in, f64 [BlocksDown()] out
//
// A block row (64 rows of the matrix) is divided into pieces of 8192 elements (elementwise.h).
// Launch: 256 threads per piece, their sums added in halves; then one thread per block row adds the
// pieces in order.
//
// Bytes moved per parameter: 4, and 16/8192 for the pieces.
#include "common/base/status_macros.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/device_threads.cuh"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/launch.h"

namespace distro::cuda {
namespace {

__global__ void __launch_bounds__(kPieceThreads)
    PiecesKernel(MatrixShape matrix, int64_t pieces_of_row, const float* __restrict__ gradient,
                 double* pieces) {
  __shared__ SquaresScratch scratch;
  const int64_t row_elements = kBlockSide * matrix.cols;
  const int64_t count = matrix.BlocksDown() * pieces_of_row;
  for (int64_t piece = blockIdx.x; piece < count; piece += gridDim.x) {
    const int64_t row = piece / pieces_of_row;
    const int64_t begin = row * row_elements + piece % pieces_of_row * kPiece;
    const int64_t row_end = min((row + 1) * row_elements, matrix.elements);
    const int64_t end = min(begin + kPiece, row_end);
    PieceSquares(DeviceThreads(), gradient + begin, end - begin, scratch);
    if (threadIdx.x == 0) pieces[piece] = scratch.sums[0];
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kPieceThreads)
    RowsKernel(int64_t rows, int64_t pieces_of_row, const double* __restrict__ pieces,
               double* row_sums) {
  const int64_t step = int64_t{gridDim.x} * kPieceThreads;
  for (int64_t row = int64_t{blockIdx.x} * kPieceThreads + threadIdx.x; row < rows; row += step) {
    double sum = 0;
    for (int64_t i = 0; i < pieces_of_row; ++i) sum += pieces[row * pieces_of_row + i];
    row_sums[row] = sum;
  }
}

}  // namespace

absl::Status SumOfSquares(const MatrixShape& matrix, const float* gradient, double* workspace,
                          double* row_sums, Stream stream) {
  const int64_t rows = matrix.BlocksDown(), pieces = PiecesOfRow(matrix);
  if (matrix.elements == 0) return absl::OkStatus();
  DISTRO_RETURN_IF_ERROR(Launch("sum of squares", PiecesKernel, rows * pieces, kPieceThreads,
                                stream, matrix, pieces, gradient, workspace));
  const int64_t groups = (rows + kPieceThreads - 1) / kPieceThreads;
  return Launch("sum of squares", RowsKernel, groups, kPieceThreads, stream, rows, pieces,
                workspace, row_sums);
}

}  // namespace distro::cuda
