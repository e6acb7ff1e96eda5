// One segment's payloads into its result: votes are summed, cut down if the run says so, encoded
// once (docs/algorithm.md, "Combining"). Pure.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/layout/layout.h"
#include "common/round_log/committed_round.h"
#include "common/update/votes.h"
#include "distro/v1/run.pb.h"

namespace distro {

struct SegmentResult {
  SharedBytes payload;
  uint64_t checksum = 0;    // XXH3-64 of the payload, as the record lists it
  uint64_t sent_votes = 0;  // votes that the payloads could cast: workers * blocks * K
  uint64_t entries = 0;     // coefficients with a vote, before download = top
  uint64_t agreement = 0;   // sum of |V|, before download = top
  absl::Duration combine_time;
  absl::Duration encode_time;
};

// `payloads` are valid updates of that segment in ascending order of the workers' names; none gives
// a result without votes. `threads` share the blocks when K <= kMaxRecordK; the result does not
// depend on them. `all_votes`, when given, gets the votes before download = top. DataLoss: a
// payload that was validated does not decode (memory is damaged). Requires threads >= 1.
absl::StatusOr<SegmentResult> CombineSegment(const Layout& layout, const v1::RunConfig& config,
                                             RoundId round, SegmentId segment,
                                             absl::Span<const SharedBytes> payloads, int threads,
                                             const Clock& clock, Votes* all_votes = nullptr);

}  // namespace distro
