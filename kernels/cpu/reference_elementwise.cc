// Compiled with -ffp-contract=off; Lookahead is called inside a DefaultFloatEnvironment.
#include <algorithm>
#include <bit>

#include "common/base/random.h"
#include "kernels/cpu/reference.h"

namespace distro::reference {

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

double SumOfSquares(const MatrixShape& matrix, absl::Span<const float> gradient) {
  const int64_t step = kBlockSide * matrix.cols;
  double total = 0;
  for (int64_t begin = 0; begin < matrix.elements; begin += step) {
    double sum = 0;
    for (int64_t i = begin; i < std::min(begin + step, matrix.elements); ++i) {
      sum += double{gradient[i]} * double{gradient[i]};
    }
    total += sum;
  }
  return total;
}

}  // namespace distro::reference
