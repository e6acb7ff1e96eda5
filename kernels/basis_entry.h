// Entries of the basis as constant expressions, for tables and for immediate operands.
#pragma once

#include <cstdint>

#include "kernels/basis_constants.h"

namespace distro {

// cos(pi*m/128) times a scale through the first quarter wave: period 256, even, odd about 64.
template <typename To, typename From>
constexpr To FoldedQuarterWave(const From (&quarter)[65], int m) {
  m %= 256;
  if (m > 128) m = 256 - m;
  return m <= 64 ? static_cast<To>(quarter[m]) : static_cast<To>(-quarter[128 - m]);
}

// kBasisF64, kBasis and kBasisQ13 (basis.h) at frequency k, sample n.
constexpr double BasisEntryF64(int k, int n) {
  return k == 0 ? 0.125 : FoldedQuarterWave<double>(kQuarterWave, (2 * n + 1) * k);
}
constexpr float BasisEntry(int k, int n) { return static_cast<float>(BasisEntryF64(k, n)); }
constexpr int16_t BasisEntryQ13(int k, int n) {
  return k == 0 ? int16_t{1024} : FoldedQuarterWave<int16_t>(kQuarterWaveQ13, (2 * n + 1) * k);
}

}  // namespace distro
