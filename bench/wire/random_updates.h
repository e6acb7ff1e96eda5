// Updates and votes with a seed, for benchmarks, and for the tests of the codecs. Pure functions.
#pragma once

#include <algorithm>
#include <bitset>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/types/span.h"
#include "common/base/random.h"
#include "common/method/signs/combine.h"
#include "common/method/signs/update.h"
#include "common/method/signs/votes.h"
#include "common/model/layout/matrix.h"

namespace distro::bench {

// The agreement between workers of a synthetic round.
struct Agreement {
  double hot = 0;         // the share of choices that fall on positions all workers know
  int hot_positions = 8;  // a block
  double positive = 0.5;  // the probability of a positive sign
};

class RandomStream {
 public:
  explicit RandomStream(uint64_t seed) : seed_(seed) {}
  uint64_t Below(uint64_t n) { return SplitMix64(seed_, next_++) % n; }
  bool Chance(double p) {
    return static_cast<double>(SplitMix64(seed_, next_++) >> 11) < p * 0x1p53;
  }

 private:
  const uint64_t seed_;
  uint64_t next_ = 0;
};

// One worker's update. Every 101st block casts no vote.
inline SignUpdate RandomUpdate(int k, int64_t blocks, uint64_t worker, Agreement agreement = {}) {
  SignUpdate update{.k = k, .positions = {}, .signs = {}};
  for (int64_t block = 0; block < blocks; ++block) {
    RandomStream random(Mix(worker) + block);
    std::vector<uint16_t> subset;
    std::bitset<kBlockElements> chosen;
    // To draw every position would take a hundred times as long as to draw their signs.
    if (k == kBlockElements) {
      subset.resize(kBlockElements);
      std::iota(subset.begin(), subset.end(), uint16_t{0});
    }
    while (subset.size() < static_cast<size_t>(k)) {
      const bool hot = random.Chance(agreement.hot);
      const uint64_t choice = hot ? SplitMix64(block, random.Below(agreement.hot_positions))
                                  : random.Below(kBlockElements);
      const auto position = static_cast<uint16_t>(choice % kBlockElements);
      if (!chosen[position]) subset.push_back(position);
      chosen.set(position);
    }
    std::sort(subset.begin(), subset.end());
    const bool abstains = (block + worker) % 101 == 100;
    for (uint16_t position : subset) {
      const int sign = random.Chance(agreement.positive) ? 1 : -1;
      update.positions.push_back(abstains ? 0 : position);
      update.signs.push_back(static_cast<int8_t>(abstains ? 0 : sign));
    }
  }
  return update;
}

inline Votes RandomVotes(int workers, int k, int64_t blocks, uint64_t seed,
                         Agreement agreement = {}) {
  std::vector<SignUpdate> updates;
  for (int worker = 0; worker < workers; ++worker) {
    updates.push_back(RandomUpdate(k, blocks, seed * 1000 + worker, agreement));
  }
  Votes votes;
  VoteAccumulator accumulator;
  for (int64_t block = 0; block < blocks; ++block) {
    for (const SignUpdate& update : updates) {
      accumulator.Add(absl::MakeConstSpan(update.positions).subspan(block * k, k),
                      absl::MakeConstSpan(update.signs).subspan(block * k, k), /*weight=*/1);
    }
    accumulator.EmitBlock(&votes);
  }
  return votes;
}

}  // namespace distro::bench
