// A run on the small layout for tests of rounds: its configuration, and workers' payloads. Pure.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/method/signs/payload.h"
#include "common/run/record/committed_round.h"
#include "common/run/run_config.h"
#include "tests/testing/round_builder.h"

namespace distro::testing {

inline constexpr uint64_t kInitialStateHash = 0x1234;

// A configuration with K = 4, which the test may change.
inline v1::RunConfig SmallConfig() {
  v1::RunConfig config;
  config.set_name("small");
  config.set_method(v1::METHOD_SIGNS);
  config.set_rounds(10);
  config.set_warmup_rounds(1);
  config.set_sequence_length(16);
  config.set_samples_per_worker(2);
  config.set_segment_blocks(2);
  config.set_max_workers(8);
  config.set_workers(v1::WORKERS_PYTHON);  // their model is nobody else's
  return *CompleteRunConfig(config);
}

// A worker's update of one segment, drawn from `seed`.
inline SignUpdate SomeUpdate(int64_t blocks, int k, uint64_t seed) {
  SignUpdate update{.k = k, .positions = {}, .signs = {}};
  for (int64_t block = 0; block < blocks; ++block) {
    uint32_t position = 0;
    for (int i = 0; i < k; ++i) {
      const uint64_t word = SplitMix64(seed, block * k + i);
      position += 1 + static_cast<uint32_t>(word % 50);
      update.positions.push_back(static_cast<uint16_t>(position));
      update.signs.push_back((word >> 40) & 1 ? 1 : -1);
    }
  }
  return update;
}

inline SharedBytes UpdatePayload(const Layout& layout, RoundId round, SegmentId segment,
                                 uint64_t seed, int k = 4) {
  return std::make_shared<const std::string>(EncodeSignUpdate(
      {.layout_hash = layout.manifest().short_hash(), .round = round, .segment = segment},
      SomeUpdate(layout.SegmentBlocks(segment), k, seed + segment.value())));
}

inline std::vector<SharedBytes> UpdatePayloads(const Layout& layout, RoundId round, uint64_t seed) {
  std::vector<SharedBytes> payloads;
  for (uint32_t s = 0; s < layout.segments(); ++s)
    payloads.push_back(UpdatePayload(layout, round, SegmentId(s), seed));
  return payloads;
}

}  // namespace distro::testing
