#include "bench/aggregator_load/synthetic_updates.h"

#include <cstring>

#include "absl/strings/string_view.h"
#include "common/base/checksum.h"
#include "common/codec/payload.h"
#include "tests/common/codec/random_updates.h"

namespace distro::bench {
namespace {

// Places in a payload (docs/payload_format.md, "Header"); all numbers are little-endian.
constexpr size_t kRoundOffset = 16;
constexpr size_t kSegmentOffset = 24;
constexpr size_t kChecksumBytes = 8;

std::string Draw(const Layout& layout, SegmentId segment, int k, int seed) {
  return EncodeUpdate({.layout_hash = layout.manifest().short_hash(), .round = {}, .segment = {}},
                      testing::RandomUpdate(k, layout.SegmentBlocks(segment), seed));
}

}  // namespace

SyntheticUpdates::SyntheticUpdates(const Layout* layout, int k, int first, int workers)
    : layout_(layout) {
  const auto segments = static_cast<int>(layout->segments());
  for (int i = 0; i < workers + segments; ++i)
    full_.push_back(Draw(*layout, SegmentId(0), k, first + i));
  for (int i = 0; i < workers; ++i)
    last_.push_back(Draw(*layout, SegmentId(layout->segments() - 1), k, first + i));
}

std::string SyntheticUpdates::Payload(int worker, RoundId round, SegmentId segment) const {
  const bool last = segment.value() + 1 == layout_->segments();
  std::string payload = last ? last_[worker] : full_[worker + segment.value()];
  const uint64_t round_number = round.value();
  const uint32_t segment_number = segment.value();
  std::memcpy(payload.data() + kRoundOffset, &round_number, sizeof(round_number));
  std::memcpy(payload.data() + kSegmentOffset, &segment_number, sizeof(segment_number));
  const size_t checked = payload.size() - kChecksumBytes;
  const uint64_t checksum = Xxh3(absl::string_view(payload).substr(0, checked));
  std::memcpy(payload.data() + checked, &checksum, sizeof(checksum));
  return payload;
}

}  // namespace distro::bench
