// What votes would take at best, for benchmarks, and for the tests of the codecs. Pure functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>

#include "common/layout/matrix.h"
#include "common/update/votes.h"

namespace distro::bench {

inline double Log2Choose(int n, int k) {
  return (std::lgamma(n + 1.0) - std::lgamma(k + 1.0) - std::lgamma(n - k + 1.0)) / std::log(2.0);
}

inline double TotalEntropy(const std::map<int, int64_t>& histogram) {
  double total = 0, bits = 0;
  for (const auto& [value, count] : histogram) total += static_cast<double>(count);
  for (const auto& [value, count] : histogram)
    bits -= static_cast<double>(count) * std::log2(count / total);
  return bits;
}

// The empirical entropy of votes in bits: zero-order entropy of the blocks' counts, log2 of the
// number of position sets of that count (or the zero-order entropy of the gaps, where that is
// less), zero-order entropy of |V|, one bit a sign.
inline double EntropyBits(const Votes& votes) {
  std::map<int, int64_t> counts, magnitudes, gaps;
  double sets = 0;
  for (int64_t block = 0; block < votes.blocks(); ++block) {
    const int count = static_cast<int>(votes.offsets[block + 1] - votes.offsets[block]);
    ++counts[count];
    sets += Log2Choose(kBlockElements, count);
    int next = 0;
    for (uint32_t i = votes.offsets[block]; i < votes.offsets[block + 1]; ++i) {
      ++gaps[votes.positions[i] - next];
      next = votes.positions[i] + 1;
      ++magnitudes[std::abs(votes.values[i])];
    }
  }
  return TotalEntropy(counts) + std::min(sets, TotalEntropy(gaps)) + TotalEntropy(magnitudes) +
         static_cast<double>(votes.values.size());
}

}  // namespace distro::bench
