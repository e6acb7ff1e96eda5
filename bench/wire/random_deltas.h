// Deltas with a seed, for benchmarks, and for the tests of the codecs. Pure functions.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "bench/wire/random_updates.h"
#include "common/method/deltas/combine.h"
#include "common/method/deltas/update.h"
#include "common/model/layout/matrix.h"

namespace distro::bench {

// One worker's update. Every 101st record is empty. Scales follow a random walk near code 120, the
// same for all workers within one code; the difference of two blocks has an entropy of about 3
// bits. Both are as in a run.
inline DeltaUpdate RandomDelta(int k, int64_t blocks, uint64_t worker, Agreement agreement = {}) {
  SignUpdate update = RandomUpdate(k, blocks, worker, agreement);
  DeltaUpdate delta = {.k = k,
                       .positions = std::move(update.positions),
                       .signs = std::move(update.signs),
                       .codes = {}};
  RandomStream common(1), own(Mix(worker) - 1);
  int code = 120;
  for (int64_t block = 0; block < blocks; ++block) {
    for (int step = 0; step < 6; ++step) code += static_cast<int>(common.Below(3)) - 1;
    code = std::clamp(code, 80, 160);
    const int of_worker = code + static_cast<int>(own.Below(3)) - 1;
    delta.codes.push_back(delta.empty(block) ? 0 : static_cast<uint8_t>(of_worker));
  }
  return delta;
}

// The result of `workers` such updates, of weight 1 each.
inline DeltaResult RandomDeltaResult(int workers, int k, int64_t blocks, uint64_t seed,
                                     Agreement agreement = {}) {
  std::vector<DeltaUpdate> updates;
  for (int worker = 0; worker < workers; ++worker)
    updates.push_back(RandomDelta(k, blocks, seed * 1000 + worker, agreement));
  std::vector<WeightedDelta> weighted;
  for (const DeltaUpdate& update : updates) weighted.push_back({.update = &update, .weight = 1});
  const std::vector<BlockExtent> extents(blocks);
  return RoundToLevels(
      CombineDeltas(weighted, extents, {.divisor = Divisor::kSenders, .weights = workers}));
}

}  // namespace distro::bench
