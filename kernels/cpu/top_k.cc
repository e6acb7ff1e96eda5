#include "kernels/cpu/top_k.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "kernels/cpu/largest.h"

namespace distro {
namespace {

constexpr int kColumns = 64;

// A magnitude that at least k coefficients reach. Parts are pieces of columns.
uint32_t ReachedBy(const TransformKernels& kernels, const float* coefficients, int k) {
  if (k > kMaxParts) return 0;
  const int parts = PartsOf(k), rows = kBlockElements / parts;
  uint32_t maxima[kMaxParts];
  for (int part = 0; part < parts; part += kColumns)
    kernels.column_maxima(coefficients + part * rows, rows, maxima + part);
  std::nth_element(maxima, maxima + k - 1, maxima + parts, std::greater<>());
  return maxima[k - 1];
}

// Keys of the coefficients in `columns` of each row; returns their number.
int Collect(const float* coefficients, const uint64_t (&columns)[kColumns], uint64_t* keys) {
  int count = 0;
  for (int h = 0; h < kColumns; ++h) {
    for (uint64_t row = columns[h]; row != 0; row &= row - 1) {
      const int position = h * 64 + std::countr_zero(row);
      keys[count++] = KeyOf(coefficients[position], position);
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
