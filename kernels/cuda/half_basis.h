// The half bases as values that the compiler makes: for constant initialisation of tables in device memory, and for tests.
#pragma once

#include "kernels/basis_entry.h"
#include "kernels/cuda/block.h"

namespace distro::cuda {

template <typename T, typename Entry>
constexpr HalfBasis<T> MakeHalfBasis(Entry entry) {
  HalfBasis<T> basis{};
  for (int k = 0; k < 64; ++k) {
    for (int n = 0; n < 32; ++n) basis.at[k * 32 + n] = entry(k, n);
  }
  return basis;
}
constexpr HalfBasis<float> MakeHalfBasisF32() { return MakeHalfBasis<float>(BasisEntry); }
constexpr HalfBasis<int32_t> MakeHalfBasisQ13() { return MakeHalfBasis<int32_t>(BasisEntryQ13); }

}  // namespace distro::cuda
