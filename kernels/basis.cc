#include "kernels/basis.h"

#include "kernels/basis_entry.h"

namespace distro {
namespace {

template <typename T>
constexpr BasisTable<T> MakeBasis(T (*entry)(int k, int n)) {
  BasisTable<T> basis{};
  for (int k = 0; k < 64; ++k) {
    for (int n = 0; n < 64; ++n) basis.at[k][n] = entry(k, n);
  }
  return basis;
}
constexpr int32_t WideEntry(int k, int n) { return BasisEntryQ13(k, n); }

constexpr int FrequencyOfSlot(int slot) {
  if (slot < 32) return 2 * slot + 1;
  return slot < 48 ? 4 * (slot - 32) + 2 : 4 * (slot - 48);
}

constexpr BasisTable<float> MakeColumns() {
  BasisTable<float> columns{};
  for (int n = 0; n < 64; ++n) {
    for (int s = 0; s < 64; ++s) columns.at[n][s] = BasisEntry(FrequencyOfSlot(s), n);
  }
  return columns;
}

}  // namespace

alignas(64) constexpr BasisTable<double> kBasisF64 = MakeBasis(BasisEntryF64);
alignas(64) constexpr BasisTable<float> kBasis = MakeBasis(BasisEntry);
alignas(64) constexpr BasisTable<int16_t> kBasisQ13 = MakeBasis(BasisEntryQ13);
alignas(64) constexpr BasisTable<int32_t> kBasisQ13Wide = MakeBasis(WideEntry);
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
