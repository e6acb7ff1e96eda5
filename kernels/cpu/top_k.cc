#include "kernels/cpu/top_k.h"

#include <algorithm>
#include <bit>
#include <functional>

namespace distro {
namespace {

constexpr int kColumns = 64;
// Rows are compared in strips, of whose columns a block has at least 2 k, or 1024.
constexpr int kMaxStrips = 16;

uint32_t Magnitude(float x) { return std::bit_cast<uint32_t>(x) & 0x7FFFFFFF; }

// Greater keys are chosen first: by magnitude, then the lower position.
uint64_t Key(uint32_t magnitude, int position) {
  return uint64_t{magnitude} << 12 | static_cast<uint64_t>(kBlockElements - 1 - position);
}
int PositionOf(uint64_t key) { return kBlockElements - 1 - static_cast<int>(key % kBlockElements); }

// A magnitude that at least k coefficients reach: the k-th largest of the maxima of the strips'
// columns, or 0 if there are fewer.
uint32_t ReachedBy(const TransformKernels& kernels, const float* coefficients, int k) {
  int strips = 1;
  while (strips < kMaxStrips && strips * kColumns < 2 * k) strips *= 2;
  const int rows = kBlockElements / kColumns / strips;
  uint32_t maxima[kMaxStrips * kColumns];
  for (int s = 0; s < strips; ++s)
    kernels.column_maxima(coefficients + s * rows * kColumns, rows, maxima + s * kColumns);
  if (k > strips * kColumns) return 0;
  std::nth_element(maxima, maxima + k - 1, maxima + strips * kColumns, std::greater<>());
  return maxima[k - 1];
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
  uint64_t columns[kColumns];
  kernels.columns_reaching(coefficients, ReachedBy(kernels, coefficients, k), columns);
  uint64_t* keys = scratch->keys;
  const int count = Collect(coefficients, columns, keys);
  if (count > k) std::nth_element(keys, keys + k - 1, keys + count, std::greater<>());
  for (int i = 0; i < k; ++i) positions[i] = static_cast<uint16_t>(PositionOf(keys[i]));
  // If all are chosen, they are in order.
  if (count != k) std::sort(positions, positions + k);
  for (int i = 0; i < k; ++i) values[i] = coefficients[positions[i]];
}

}  // namespace distro
