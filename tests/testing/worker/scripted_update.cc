#include "tests/testing/worker/scripted_update.h"

#include <memory>

#include "common/base/checksum.h"
#include "common/base/random.h"
#include "common/method/signs/payload.h"

namespace distro::testing {

SignUpdate ScriptedSegment(const Layout& layout, RoundId round, SegmentId segment,
                           const std::string& worker, int k) {
  const uint64_t seed = Xxh3(worker) + (round.value() << 20) + segment.value();
  SignUpdate update;
  update.k = k;
  for (int64_t block = 0; block < layout.SegmentBlocks(segment); ++block) {
    const uint64_t draw = SplitMix64(seed, block);
    const bool votes = draw % 8 != 0;
    for (int i = 0; i < k; ++i) {
      // Few positions, so that workers meet.
      update.positions.push_back(votes ? static_cast<uint16_t>(i * 4 + (draw >> (8 + i)) % 4) : 0);
      update.signs.push_back(!votes ? 0 : (draw >> (32 + i)) % 2 != 0 ? 1 : -1);
    }
  }
  return update;
}

RoundUpdate ScriptedUpdate(const Layout& layout, RoundId round, const std::string& worker, int k,
                           bool abstain) {
  RoundUpdate update{.round = round,
                     .state_hash = kScriptedStateHash,
                     .loss = 1,
                     .abstain = abstain,
                     .payloads = {}};
  for (uint32_t s = 0; s < layout.segments() && !abstain; ++s) {
    const PayloadIdentity identity{layout.manifest().short_hash(), round, SegmentId(s)};
    update.payloads.push_back(std::make_shared<const std::string>(
        EncodeSignUpdate(identity, ScriptedSegment(layout, round, SegmentId(s), worker, k))));
  }
  return update;
}

}  // namespace distro::testing
