// Sums of squares in f64, in a fixed order (kernels/squares.h): of the block rows of a matrix, and
// of the deltas method's movement and error buffer.
//
//   row_sums[y] = sum over the elements of block row y of g^2
//       f32 [elements] in, f64 [BlocksDown()] out
//   moved[i], buffer[i] = sum over the elements of piece i of (begin - x)^2, and of error^2
//       f32 [elements] in, f64 [PiecesOf(elements)] out
//
// A block row (64 rows of the matrix) is divided into pieces. Launch: 256 threads per piece, their
// sums added in halves; then one thread per block row adds the pieces in order. Pieces of deltas
// are added by the host.
//
// Bytes moved per parameter: 4, and 16/8192 for the pieces; of deltas 12, and 16/8192.
#include "common/base/status_macros.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/device_threads.cuh"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/launch.h"

namespace distro::cuda {
namespace {

__global__ void __launch_bounds__(kPieceSums)
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
    PieceSquares(
        DeviceThreads(), end - begin, [&](int64_t i) { return gradient[begin + i]; }, scratch);
    if (threadIdx.x == 0) pieces[piece] = scratch.sums[0];
    __syncthreads();
  }
}

__global__ void __launch_bounds__(kPieceSums)
    RowsKernel(int64_t rows, int64_t pieces_of_row, const double* __restrict__ pieces,
               double* row_sums) {
  const int64_t step = int64_t{gridDim.x} * kPieceSums;
  for (int64_t row = int64_t{blockIdx.x} * kPieceSums + threadIdx.x; row < rows; row += step) {
    double sum = 0;
    for (int64_t i = 0; i < pieces_of_row; ++i) sum += pieces[row * pieces_of_row + i];
    row_sums[row] = sum;
  }
}

__global__ void __launch_bounds__(kPieceSums)
    DeltaSquaresKernel(const float* __restrict__ begin, const float* __restrict__ x,
                       const float* __restrict__ error, int64_t elements, double* moved,
                       double* buffer) {
  __shared__ SquaresScratch of_moved, of_buffer;
  for (int64_t piece = blockIdx.x; piece < PiecesOf(elements); piece += gridDim.x) {
    const int64_t first = piece * kPiece, count = min(kPiece, elements - first);
    PieceSquares(
        DeviceThreads(), count, [&](int64_t i) { return begin[first + i] - x[first + i]; },
        of_moved);
    PieceSquares(
        DeviceThreads(), count, [&](int64_t i) { return error[first + i]; }, of_buffer);
    if (threadIdx.x == 0) {
      moved[piece] = of_moved.sums[0];
      buffer[piece] = of_buffer.sums[0];
    }
    __syncthreads();
  }
}

}  // namespace

absl::Status DeltaSquares(const float* begin, const float* x, const float* error, int64_t elements,
                          double* moved, double* buffer, Stream stream) {
  if (elements == 0) return absl::OkStatus();
  return Launch("squares of deltas", DeltaSquaresKernel, PiecesOf(elements), kPieceSums, stream,
                begin, x, error, elements, moved, buffer);
}

absl::Status SumOfSquares(const MatrixShape& matrix, const float* gradient, double* workspace,
                          double* row_sums, Stream stream) {
  const int64_t rows = matrix.BlocksDown(), pieces = PiecesOfRow(matrix);
  if (matrix.elements == 0) return absl::OkStatus();
  DISTRO_RETURN_IF_ERROR(Launch("sum of squares", PiecesKernel, rows * pieces, kPieceSums, stream,
                                matrix, pieces, gradient, workspace));
  const int64_t groups = (rows + kPieceSums - 1) / kPieceSums;
  return Launch("sum of squares", RowsKernel, groups, kPieceSums, stream, rows, pieces, workspace,
                row_sums);
}

}  // namespace distro::cuda
