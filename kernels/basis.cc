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

constexpr int FrequencyOfSlot(int slot) {
  if (slot < 32) return 2 * slot + 1;
  return slot < 48 ? 4 * (slot - 32) + 2 : 4 * (slot - 48);
}

constexpr BasisTable<float> MakeColumns() {
  const BasisTable<float> basis = MakeBasis<float>(kQuarterWave, 0.125f);
  BasisTable<float> columns{};
  for (int n = 0; n < 64; ++n) {
    for (int s = 0; s < 64; ++s) columns.at[n][s] = basis.at[FrequencyOfSlot(s)][n];
  }
  return columns;
}

}  // namespace

alignas(64) constexpr BasisTable<double> kBasisF64 = MakeBasis<double>(kQuarterWave, 0.125);
alignas(64) constexpr BasisTable<float> kBasis = MakeBasis<float>(kQuarterWave, 0.125f);
alignas(64) constexpr BasisTable<int16_t> kBasisQ13 = MakeBasis<int16_t>(kQuarterWaveQ13,
                                                                         int16_t{1024});
alignas(64) constexpr BasisTable<int32_t> kBasisQ13Wide = MakeBasis<int32_t>(kQuarterWaveQ13,
                                                                             int32_t{1024});
const uint8_t kSlotFrequency[64] = {1,  3,  5,  7,  9,  11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31,
                                    33, 35, 37, 39, 41, 43, 45, 47, 49, 51, 53, 55, 57, 59, 61, 63,
                                    2,  6,  10, 14, 18, 22, 26, 30, 34, 38, 42, 46, 50, 54, 58, 62,
                                    0,  4,  8,  12, 16, 20, 24, 28, 32, 36, 40, 44, 48, 52, 56, 60};
const uint8_t kFrequencySlot[64] = {48, 0,  32, 1,  49, 2,  33, 3,  50, 4,  34, 5,  51, 6,  35, 7,
                                    52, 8,  36, 9,  53, 10, 37, 11, 54, 12, 38, 13, 55, 14, 39, 15,
                                    56, 16, 40, 17, 57, 18, 41, 19, 58, 20, 42, 21, 59, 22, 43, 23,
                                    60, 24, 44, 25, 61, 26, 45, 27, 62, 28, 46, 29, 63, 30, 47, 31};
alignas(64) constexpr BasisTable<float> kBasisColumns = MakeColumns();

}  // namespace distro
