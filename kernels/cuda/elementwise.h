// Per-element operations of Backend::Lookahead, Backend::StateHash and the deltas method's error
// buffer, and sums of squares (kernels/squares.h). Elements have the CPU's bits. The order of a
// block row's sum of squares differs from the CPU's, but depends only on the row's length: it is
// the same on every device, however block rows are grouped, and in tests on the CPU.
#pragma once

#include <cstdint>

#include "common/base/random.h"
#include "common/model/layout/matrix.h"
#include "kernels/squares.h"

namespace distro::cuda {

// Two rounded operations; sign(0) = +0.
constexpr float Ahead(float eta, float p, float m) {
  const float direction = static_cast<float>((m > 0) - (m < 0));
  const float step = eta * direction;
  return p - step;
}

// FormDelta of kernels/cpu/deltas_compress.h: three rounded operations.
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

constexpr int64_t PiecesOfRow(const MatrixShape& matrix) {
  return PiecesOf(kBlockSide * matrix.cols);
}

// How many doubles SumOfSquares needs for its pieces.
constexpr int64_t SquaresWorkspace(const MatrixShape& matrix) {
  return matrix.BlocksDown() * PiecesOfRow(matrix);
}

struct SquaresScratch {
  double sums[kPieceSums];
};

template <typename Value>
constexpr double ThreadSquares(int64_t elements, int thread, const Value& value) {
  double sum = 0;
  for (int64_t i = thread; i < elements; i += kPieceSums) {
    const double x = value(i);
    sum = sum + x * x;
  }
  return sum;
}

// The squares of value(0), ..., value(elements - 1), a piece at most. Needs kPieceSums threads. The
// sum is in s.sums[0] afterwards.
template <typename Threads, typename Value>
constexpr void PieceSquares(const Threads& threads, int64_t elements, const Value& value,
                            SquaresScratch& s) {
  threads.Each([&](int thread) { s.sums[thread] = ThreadSquares(elements, thread, value); });
  for (int half = kPieceSums / 2; half > 0; half /= 2) {
    threads.Each([&](int thread) {
      if (thread < half) s.sums[thread] = s.sums[thread] + s.sums[thread + half];
    });
  }
}

}  // namespace distro::cuda
