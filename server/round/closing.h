// Segments of the open round as they close: what leaves the round under the manager's mutex, and
// how it is combined outside of it, on several threads.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/round/round_method.h"
#include "server/log/run_identity.h"
#include "server/round/round.h"

namespace distro::server {

struct ClosedSegment {
  SegmentId segment;
  std::vector<SentPayload> payloads;  // ascending by worker
  absl::Duration last_in;
  std::vector<Contribution> audited = {};  // of the segment that is audited in this round
};

// Takes the segments' payloads out of the round. Nobody waits any more for who is missing in one;
// returns their names as often as they are missing.
std::vector<std::string> CloseSegments(absl::Span<const SegmentId> segments, Round* round,
                                       std::vector<ClosedSegment>* closed);

// `done` gets each segment's result in the given order, on the calling thread; its error ends it.
// That of an audited segment is kept for comparison. As many segments at a time as
// there are threads, so that the first results leave before the last segments are combined; where
// there are fewer, several threads share one. DataLoss: memory is damaged.
absl::Status CombineClosed(
    const RunIdentity& run, RoundId round, absl::Span<const ClosedSegment> closed,
    const Clock& clock,
    absl::FunctionRef<absl::Status(const ClosedSegment&, const SegmentResult&)> done);

}  // namespace distro::server
