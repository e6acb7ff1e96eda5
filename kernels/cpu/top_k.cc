#include "kernels/cpu/top_k.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace distro {
namespace {

constexpr int kColumns = 64;

uint32_t Magnitude(float x) { return std::bit_cast<uint32_t>(x) & 0x7FFFFFFF; }

// Greater keys are chosen first: by magnitude, then the lower position.
uint64_t Key(uint32_t magnitude, int position) {
  return uint64_t{magnitude} << 12 | static_cast<uint64_t>(kBlockElements - 1 - position);
}
int PositionOf(uint64_t key) { return kBlockElements - 1 - static_cast<int>(key % kBlockElements); }

uint32_t KthLargest(const uint32_t (&maxima)[kColumns], int k) {
  uint32_t sorted[kColumns];
  std::copy_n(maxima, kColumns, sorted);
  std::nth_element(sorted, sorted + k - 1, sorted + kColumns, std::greater<>());
  return sorted[k - 1];
}

// Keys of the coefficients in `columns` of each row; returns their number.
int Collect(const float* coefficients, const uint64_t (&columns)[kColumns], uint64_t* keys) {
  int count = 0;
  for (int h = 0; h < kColumns; ++h) {
    for (uint64_t row = columns[h]; row != 0; row &= row - 1) {
      const int position = h * 64 + std::countr_zero(row);
      keys[count++] = Key(Magnitude(coefficients[position]), position);
    }
  }
  return count;
}

}  // namespace

void TopK(const TransformKernels& kernels, const float* coefficients, int k, TopKScratch* scratch,
          uint16_t* positions, float* values) {
  uint32_t maxima[kColumns];
  kernels.column_maxima(coefficients, maxima);
  const uint32_t threshold = k <= kColumns ? KthLargest(maxima, k) : 0;
  uint64_t columns[kColumns];
  kernels.columns_reaching(coefficients, threshold, columns);
  uint64_t* keys = scratch->keys;
  const int count = Collect(coefficients, columns, keys);
  if (count > k) std::nth_element(keys, keys + k - 1, keys + count, std::greater<>());
  for (int i = 0; i < k; ++i) positions[i] = static_cast<uint16_t>(PositionOf(keys[i]));
  // If all are chosen, they are in order.
  if (count != k) std::sort(positions, positions + k);
  for (int i = 0; i < k; ++i) values[i] = coefficients[positions[i]];
}

}  // namespace distro
