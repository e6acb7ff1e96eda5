// Compiled with -ffp-contract=off; called inside a DefaultFloatEnvironment.
#include "kernels/basis.h"
#include "kernels/cpu/reference.h"

namespace distro::reference {

void InverseInteger(const BlockVotes& votes, int32_t u[kBlockElements]) {
  int32_t v[kBlockSide][kBlockSide] = {};
  for (int i = 0; i < votes.count; ++i) {
    v[votes.positions[i] / kBlockSide][votes.positions[i] % kBlockSide] =
        votes.values[i] * (1 << votes.shift);
  }
  int32_t t[kBlockSide][kBlockSide];  // [vertical frequency][column]
  for (int a = 0; a < kBlockSide; ++a) {
    for (int c = 0; c < kBlockSide; ++c) {
      int32_t sum = 32;
      for (int b = 0; b < kBlockSide; ++b) sum += v[a][b] * kBasisQ13.at[b][c];
      t[a][c] = sum >> 6;
    }
  }
  for (int r = 0; r < kBlockSide; ++r) {
    for (int c = 0; c < kBlockSide; ++c) {
      int32_t sum = 0;
      for (int a = 0; a < kBlockSide; ++a) sum += kBasisQ13.at[a][r] * t[a][c];
      u[r * kBlockSide + c] = sum;
    }
  }
}

void Update(const BlockSite& site, const UpdateOptions& options, const int32_t u[kBlockElements],
            absl::Span<float> parameters) {
  for (int r = 0; r < site.rows; ++r) {
    const int cols = r + 1 == site.rows ? site.last_cols : site.cols;
    for (int c = 0; c < cols; ++c) {
      const int32_t sum = u[r * kBlockSide + c];
      const float direction = static_cast<float>((sum > 0) - (sum < 0));
      float& p = parameters[site.offset + r * site.stride + c];
      const float decay = p * options.eta_lambda;
      const float decayed = p - decay;
      p = decayed - options.eta * direction;
    }
  }
}

}  // namespace distro::reference
