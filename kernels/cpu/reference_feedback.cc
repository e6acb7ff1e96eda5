#include "kernels/basis.h"
#include "kernels/cpu/reference.h"

namespace distro::reference {

void InverseTransform(int k, const uint16_t* positions, const float* values,
                      float x[kBlockElements]) {
  double t[kBlockSide][kBlockSide] = {};  // [vertical frequency][column]
  for (int i = 0; i < k; ++i) {
    const int h = positions[i] / kBlockSide;
    const int w = positions[i] % kBlockSide;
    for (int q = 0; q < kBlockSide; ++q) t[h][q] += double{values[i]} * kBasisF64.at[w][q];
  }
  for (int r = 0; r < kBlockSide; ++r) {
    for (int q = 0; q < kBlockSide; ++q) {
      double sum = 0;
      for (int h = 0; h < kBlockSide; ++h) sum += kBasisF64.at[h][r] * t[h][q];
      x[r * kBlockSide + q] = static_cast<float>(sum);
    }
  }
}

}  // namespace distro::reference
