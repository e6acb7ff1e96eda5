// What selections of a block's k largest elements share: top_k.h of frequencies, deltas_compress.h
// of the elements of a tensor.
#pragma once

#include <bit>
#include <cstdint>

#include "common/model/layout/matrix.h"

namespace distro {

constexpr int kMaxParts = 1024;

// Parts of one size into which a whole block is divided, 64 to kMaxParts: at least 2 k where that
// is possible. The k-th largest maximum of a part is a lower bound for the k-th largest element, so
// only elements that reach it, little more than k, need a key.
constexpr int PartsOf(int k) {
  int parts = kBlockSide;
  while (parts < kMaxParts && parts < 2 * k) parts *= 2;
  return parts;
}

// Greater keys are chosen first: by magnitude, a NaN above all numbers, then the lower position.
constexpr uint64_t KeyOf(float x, int position) {
  return uint64_t{std::bit_cast<uint32_t>(x) & 0x7FFFFFFF} << 12 |
         static_cast<uint64_t>(kBlockElements - 1 - position);
}
constexpr int PositionOf(uint64_t key) {
  return kBlockElements - 1 - static_cast<int>(key % kBlockElements);
}

}  // namespace distro
