// Per-element operations of Backend::Lookahead, Backend::StateHash and the deltas method's error
// buffer, and the parts of a block row's sum of squares. Elements have the CPU's bits. The order of
// the sum of squares differs from the CPU's, but depends only on the row's length: it is the same
// on every device, however block rows are grouped, and in tests on the CPU.
#pragma once

#include <cstdint>

#include "common/base/random.h"
#include "common/layout/matrix.h"

namespace distro::cuda {

// Two rounded operations; sign(0) = +0.
constexpr float Ahead(float eta, float p, float m) {
  const float direction = static_cast<float>((m > 0) - (m < 0));
  const float step = eta * direction;
  return p - step;
}

// FormDelta of kernels/cpu/deltas.h: three rounded operations.
constexpr float FormedDelta(float beta, float begin, float x, float e) {
  const float kept = beta * e;
  const float moved = begin - x;
  return kept + moved;
}

constexpr bool IsFinite(float x) {
  constexpr uint32_t kExponent = 0x7F800000;
  return (__builtin_bit_cast(uint32_t, x) & kExponent) != kExponent;
}

constexpr uint64_t HashWord(uint64_t index, float p) {
  return Mix((index << 32) + __builtin_bit_cast(uint32_t, p) + kGoldenGamma);
}

// A block row is divided into pieces of kPiece elements. In a piece, thread j of kPieceThreads adds
// the elements j, j + kPieceThreads, ...; then the threads' sums are added in halves: 0 + 128, 1 +
// 129, ..., 0 + 64, ...
inline constexpr int64_t kPiece = 8192;
inline constexpr int kPieceThreads = 256;

constexpr int64_t PiecesOfRow(const MatrixShape& matrix) {
  return (kBlockSide * matrix.cols + kPiece - 1) / kPiece;
}

// How many doubles SumOfSquares needs for its pieces.
constexpr int64_t SquaresWorkspace(const MatrixShape& matrix) {
  return matrix.BlocksDown() * PiecesOfRow(matrix);
}

struct SquaresScratch {
  double sums[kPieceThreads];
};

constexpr double ThreadSquares(const float* piece, int64_t elements, int thread) {
  double sum = 0;
  for (int64_t i = thread; i < elements; i += kPieceThreads) {
    const double x = piece[i];
    sum = sum + x * x;  // x * x is exact
  }
  return sum;
}

// Needs kPieceThreads threads. The sum is in s.sums[0] afterwards.
template <typename Threads>
constexpr void PieceSquares(const Threads& threads, const float* piece, int64_t elements,
                            SquaresScratch& s) {
  threads.Each([&](int thread) { s.sums[thread] = ThreadSquares(piece, elements, thread); });
  for (int half = kPieceThreads / 2; half > 0; half /= 2) {
    threads.Each([&](int thread) {
      if (thread < half) s.sums[thread] = s.sums[thread] + s.sums[thread + half];
    });
  }
}

}  // namespace distro::cuda
