#include "common/round/combiner.h"

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/codec/payload.h"
#include "common/codec/record_codec.h"
#include "common/codec/update_reader.h"
#include "common/update/combine.h"

namespace distro {
namespace {

// Below, a thread costs more than it saves.
constexpr uint32_t kLeastBlocksOfThread = 512;

std::vector<SegmentRange> Cut(const PayloadExpectation& expected, int threads) {
  const uint32_t parts =
      expected.k > kMaxRecordK
          ? 1
          : std::clamp<uint32_t>(expected.blocks / kLeastBlocksOfThread, 1, threads);
  std::vector<SegmentRange> ranges;
  for (uint64_t part = 0, first = 0; part < parts; ++part) {
    const uint64_t end = expected.blocks * (part + 1) / parts;
    ranges.push_back(
        {.first = static_cast<uint32_t>(first), .count = static_cast<uint32_t>(end - first)});
    first = end;
  }
  return ranges;
}

// The votes of the blocks of a segment.
struct Part {
  Votes all;
  Votes strongest;  // with download = top
};

absl::StatusOr<Part> CombineBlocks(const Layout& layout, const v1::RunConfig& config,
                                   absl::Span<const WeightedPayload> payloads,
                                   const PayloadExpectation& expected, SegmentRange range) {
  absl::StatusOr<Votes> votes = CombinePayloads(payloads, expected, range);
  if (!votes.ok()) return absl::DataLossError(votes.status().message());
  Part part = {.all = *std::move(votes), .strongest = {}};
  if (config.download() == v1::DOWNLOAD_MODE_TOP) {
    part.strongest =
        KeepTop(part.all, static_cast<int>(config.kept_votes_per_block()), config.seed(),
                expected.round, layout.SegmentFirstBlock(expected.segment) + range.first);
  }
  return part;
}

}  // namespace

absl::StatusOr<SegmentResult> CombineSegment(const Layout& layout, const v1::RunConfig& config,
                                             RoundId round, SegmentId segment,
                                             absl::Span<const SharedBytes> payloads, int threads,
                                             const Clock& clock, Votes* all_votes) {
  const PayloadExpectation expected =
      ExpectPayload(layout, round, segment, static_cast<int>(config.kept_per_block()));
  const absl::Duration start = clock.MonotonicNow();
  std::vector<WeightedPayload> weighted;
  for (const SharedBytes& payload : payloads) weighted.push_back({.bytes = *payload, .weight = 1});
  const std::vector<SegmentRange> ranges = Cut(expected, threads);
  std::vector<absl::StatusOr<Part>> parts(ranges.size());
  RunParallel(threads, static_cast<int64_t>(ranges.size()), [&](int /*thread*/, int64_t i) {
    parts[i] = CombineBlocks(layout, config, weighted, expected, ranges[i]);
  });
  SegmentResult result;
  result.sent_votes = payloads.size() * uint64_t{expected.blocks} * config.kept_per_block();
  std::vector<Votes> all, strongest;
  for (absl::StatusOr<Part>& part : parts) {
    DISTRO_RETURN_IF_ERROR(part.status());
    result.entries += part->all.values.size();
    for (const int16_t value : part->all.values)
      result.agreement += static_cast<uint64_t>(std::abs(value));
    all.push_back(std::move(part->all));
    strongest.push_back(std::move(part->strongest));
  }
  const bool cut = config.download() == v1::DOWNLOAD_MODE_TOP;
  Votes votes = Concatenate(std::move(cut ? strongest : all));
  const absl::Duration combined = clock.MonotonicNow();
  std::string bytes = EncodeVotes(IdentifyPayload(layout, round, segment), votes);
  result.checksum = PayloadChecksum(bytes);
  result.payload = std::make_shared<const std::string>(std::move(bytes));
  result.combine_time = combined - start;
  result.encode_time = clock.MonotonicNow() - combined;
  if (all_votes != nullptr) *all_votes = cut ? Concatenate(std::move(all)) : std::move(votes);
  return result;
}

}  // namespace distro
