// The matrix and the arrays that the benchmarks of kernels share. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "common/base/random.h"
#include "common/model/layout/matrix.h"
#include "kernels/block.h"

namespace distro::bench {

// 4.2 M parameters: 16 MiB an array, as one matrix of a 1.2 B model.
inline constexpr int64_t kSide = 2048;
inline constexpr MatrixShape kMatrix = {.rows = kSide, .cols = kSide, .elements = kSide * kSide};
inline constexpr BlockRange kBlocks = {.first = 0, .count = kMatrix.Blocks()};

// In -1 to 1.
inline std::vector<float> RandomFloats(uint64_t seed, size_t count) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i)
    out[i] = static_cast<float>(static_cast<int64_t>(SplitMix64(seed, i)) * 0x1p-63);
  return out;
}

}  // namespace distro::bench
