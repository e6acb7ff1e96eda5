#include "server/round/combiner.h"

#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status_macros.h"
#include "common/codec/payload.h"
#include "common/codec/update_reader.h"
#include "common/update/top.h"

namespace distro::server {
namespace {

absl::StatusOr<Votes> Sum(absl::Span<const SharedBytes> payloads,
                          const PayloadExpectation& expected) {
  std::vector<WeightedPayload> weighted;
  for (const SharedBytes& payload : payloads) weighted.push_back({.bytes = *payload, .weight = 1});
  absl::StatusOr<Votes> votes = CombinePayloads(weighted, expected);
  if (!votes.ok()) return absl::DataLossError(votes.status().message());
  return votes;
}

}  // namespace

absl::StatusOr<SegmentResult> CombineSegment(const Layout& layout, const v1::RunConfig& config,
                                             RoundId round, SegmentId segment,
                                             absl::Span<const SharedBytes> payloads,
                                             const Clock& clock, Votes* all_votes) {
  const PayloadExpectation expected =
      ExpectPayload(layout, round, segment, static_cast<int>(config.kept_per_block()));
  const absl::Duration start = clock.MonotonicNow();
  DISTRO_ASSIGN_OR_RETURN(Votes votes, Sum(payloads, expected));
  SegmentResult result;
  result.sent_votes = payloads.size() * uint64_t{expected.blocks} * config.kept_per_block();
  result.entries = votes.values.size();
  for (const int16_t value : votes.values)
    result.agreement += static_cast<uint64_t>(std::abs(value));
  if (all_votes != nullptr) *all_votes = votes;
  if (config.download() == v1::DOWNLOAD_MODE_TOP) {
    votes = KeepTop(votes, static_cast<int>(config.kept_votes_per_block()), config.seed(), round,
                    layout.SegmentFirstBlock(segment));
  }
  const absl::Duration combined = clock.MonotonicNow();
  std::string bytes =
      EncodeVotes({.layout_hash = expected.layout_hash, .round = round, .segment = segment}, votes);
  result.checksum = PayloadChecksum(bytes);
  result.payload = std::make_shared<const std::string>(std::move(bytes));
  result.combine_time = combined - start;
  result.encode_time = clock.MonotonicNow() - combined;
  return result;
}

}  // namespace distro::server
