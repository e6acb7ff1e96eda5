#include "kernels/basis.h"

#include "kernels/basis_constants.h"

namespace distro {
namespace {

// cos(pi*m/128) through the first quarter wave: period 256, even, odd about 64.
template <typename To, typename From>
constexpr To Folded(const From (&quarter)[65], int m) {
  m %= 256;
  if (m > 128) m = 256 - m;
  return m <= 64 ? static_cast<To>(quarter[m]) : static_cast<To>(-quarter[128 - m]);
}

template <typename To, typename From>
constexpr BasisTable<To> MakeBasis(const From (&quarter)[65], To constant_row) {
  BasisTable<To> basis{};
  for (int n = 0; n < 64; ++n) basis.at[0][n] = constant_row;
  for (int k = 1; k < 64; ++k) {
    for (int n = 0; n < 64; ++n) basis.at[k][n] = Folded<To>(quarter, (2 * n + 1) * k);
  }
  return basis;
}

}  // namespace

alignas(64) constexpr BasisTable<double> kBasisF64 = MakeBasis<double>(kQuarterWave, 0.125);
alignas(64) constexpr BasisTable<float> kBasis = MakeBasis<float>(kQuarterWave, 0.125f);
alignas(64) constexpr BasisTable<int16_t> kBasisQ13 = MakeBasis<int16_t>(kQuarterWaveQ13,
                                                                         int16_t{1024});
alignas(64) constexpr BasisTable<int32_t> kBasisQ13Wide = MakeBasis<int32_t>(kQuarterWaveQ13,
                                                                             int32_t{1024});

}  // namespace distro
