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

}  // namespace

alignas(64) constexpr BasisTable<double> kBasisF64 = MakeBasis(BasisEntryF64);
alignas(64) constexpr BasisTable<float> kBasis = MakeBasis(BasisEntry);
alignas(64) constexpr BasisTable<int16_t> kBasisQ13 = MakeBasis(BasisEntryQ13);
alignas(64) constexpr BasisTable<int32_t> kBasisQ13Wide = MakeBasis(WideEntry);

}  // namespace distro
