// What the inverse transforms share: the vertical axis, in groups of frequencies.
//
// A row of the basis is even or odd about its middle, and an even one again within its half. So the
// odd frequencies are summed at 32 rows of the block, those of 2 mod 4 and of 0 mod 4 at 16, and
// JoinRows makes the 64 rows of them. See vector.h for the rule on allowed code.
#pragma once

#include "kernels/cpu/vector.h"

namespace distro::vector {

// 0 for odd frequencies, 1 for 2 mod 4, 2 for 0 mod 4.
template <int L>
constexpr int GroupOf(int frequency) {
  return frequency % 2 == 1 ? 0 : (frequency % 4 == 2 ? 1 : 2);
}

// Frequencies, and rows at which they are summed, of the groups before; the same number for both.
template <int L>
inline constexpr int kFirstOfGroup[3] = {0, 32, 48};
template <int L>
inline constexpr int kRowsOfGroup[3] = {32, 16, 16};

// u [64, 64] from the sums of the three groups, parts [64, 64].
template <int L, typename T>
inline void JoinRows(const T* parts, T* u) {
  using Vector = typename Of<L, T>::Type;
  for (int r = 0; r < 16; ++r) {
    for (int c = 0; c < 64; c += L) {
      const Vector quarter = Load<L>(parts + (48 + r) * 64 + c),
                   other = Load<L>(parts + (32 + r) * 64 + c);
      const Vector outer = quarter + other, inner = quarter - other;
      const Vector odd_outer = Load<L>(parts + r * 64 + c),
                   odd_inner = Load<L>(parts + (31 - r) * 64 + c);
      Store<L>(outer + odd_outer, u + r * 64 + c);
      Store<L>(inner + odd_inner, u + (31 - r) * 64 + c);
      Store<L>(inner - odd_inner, u + (32 + r) * 64 + c);
      Store<L>(outer - odd_outer, u + (63 - r) * 64 + c);
    }
  }
}

}  // namespace distro::vector
