// The orthonormal DCT-II basis of length 64 as constants. They do not depend on libm, so every
// build and every backend, CUDA included, uses the same bits.
//
// Row = frequency k, column = sample n. Entry (k, n) is s(k) * cos(pi*(2n+1)*k/128), s(0) = 1/8,
// else sqrt(2/64). Row k is exactly even (k even) or odd (k odd) about its middle; so is row 2k
// within its first half, and so on recursively. A transform's recursive even-odd split therefore
// does not change integer results.
#pragma once

#include <cstdint>

namespace distro {

template <typename T>
struct BasisTable {
  T at[64][64];
};

extern const BasisTable<double> kBasisF64;  // correctly rounded
extern const BasisTable<float> kBasis;      // kBasisF64 rounded again
extern const BasisTable<int16_t>
    kBasisQ13;  // round(2^13 * basis), normative (docs/algorithm.md, "Exactness")
extern const BasisTable<int32_t> kBasisQ13Wide;  // the same, widened

}  // namespace distro
