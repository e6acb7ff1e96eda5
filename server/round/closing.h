// Closes segments of the open round: removes their payloads from the round under the mutex of
// SharedRun, and combines them outside the mutex on several threads.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "common/base/clock.h"
#include "common/base/ids.h"
#include "common/method/base/round_method.h"
#include "server/log/run_identity.h"
#include "server/round/round.h"

namespace distro::server {

struct ClosedSegment {
  SegmentId segment;
  std::vector<SentPayload> payloads;  // ascending by worker
  absl::Duration last_in;
  std::vector<Contribution> audited = {};  // of the segment that is audited in this round
};

// Removes the segments' payloads from the round. The round no longer waits for workers missing in
// one of them; returns their names, once per missing segment.
std::vector<std::string> CloseSegments(absl::Span<const SegmentId> segments, Round* round,
                                       std::vector<ClosedSegment>* closed);

// Combines the segments and calls `done` with each result in the given order, on the calling
// thread; an error of `done` ends it. Combines as many segments at a time as there are threads, so
// that the first results are sent before the last segments are combined; if there are fewer,
// several threads share a segment. DataLoss: memory is damaged.
absl::Status CombineClosed(
    const RunIdentity& run, RoundId round, absl::Span<const ClosedSegment> closed,
    const Clock& clock,
    absl::FunctionRef<absl::Status(const ClosedSegment&, const SegmentResult&)> done);

}  // namespace distro::server
