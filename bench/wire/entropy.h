// The entropy of votes and deltas, the lower bound of their codecs: for benchmarks and for the
// tests of the codecs. Pure functions.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>

#include "common/method/deltas/update.h"
#include "common/method/signs/votes.h"
#include "common/model/layout/matrix.h"

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

// Of the positions of entries in bits: zero-order entropy of the blocks' counts, log2 of the number
// of position sets of that count (or the zero-order entropy of the gaps, where that is less).
template <typename Entries>
double PositionBits(const Entries& entries) {
  std::map<int, int64_t> counts, gaps;
  double sets = 0;
  for (int64_t block = 0; block < entries.blocks(); ++block) {
    const int count = static_cast<int>(entries.offsets[block + 1] - entries.offsets[block]);
    ++counts[count];
    sets += Log2Choose(kBlockElements, count);
    int next = 0;
    for (uint32_t i = entries.offsets[block]; i < entries.offsets[block + 1]; ++i) {
      ++gaps[entries.positions[i] - next];
      next = entries.positions[i] + 1;
    }
  }
  return TotalEntropy(counts) + std::min(sets, TotalEntropy(gaps));
}

// The empirical entropy of votes in bits: their positions, zero-order entropy of |V|, one bit a
// sign.
inline double EntropyBits(const Votes& votes) {
  std::map<int, int64_t> magnitudes;
  for (const int16_t value : votes.values) ++magnitudes[std::abs(value)];
  return PositionBits(votes) + TotalEntropy(magnitudes) + static_cast<double>(votes.values.size());
}

// Of deltas: their positions, zero-order entropy of the levels and of the differences of scale
// codes between blocks with entries, one bit a sign.
inline double EntropyBits(const DeltaResult& deltas) {
  std::map<int, int64_t> levels, differences;
  for (const uint8_t level : deltas.levels) ++levels[level];
  int before = 0;
  for (int64_t block = 0; block < deltas.blocks(); ++block) {
    if (deltas.offsets[block] == deltas.offsets[block + 1]) continue;
    ++differences[deltas.codes[block] - before];
    before = deltas.codes[block];
  }
  return PositionBits(deltas) + TotalEntropy(levels) + TotalEntropy(differences) +
         static_cast<double>(deltas.signs.size());
}

}  // namespace distro::bench
