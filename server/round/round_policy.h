// Decides when a segment closes and when a round commits: one pure function of facts about the
// round, monotonic time and the policy (docs/protocol.md). The reason is for people: logs, metrics,
// the status page.
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/ids.h"

namespace distro::server {

struct RoundPolicyOptions {
  int min_workers = 1;                                 // updates that a segment needs at least
  absl::Duration deadline = absl::InfiniteDuration();  // from Open
};

// A worker with samples in the round.
struct RoundWorker {
  std::string name;
  bool expected = false;  // ACTIVE at Open and not gone since
  bool in_session = false;
  bool abstained = false;
  bool counts = true;  // false: on probation, its updates are checked but not used
};

struct RoundSegment {
  bool closed = false;
  std::vector<bool> in;  // [workers]: the worker's payload is there
};

struct RoundFacts {
  RoundId round;
  absl::Duration opened_at;
  std::vector<RoundWorker> workers;    // ascending by name
  std::vector<RoundSegment> segments;  // [segments]
};

enum class RoundAction { kWait, kClose, kCommit };

struct RoundDecision {
  RoundAction action = RoundAction::kWait;
  std::vector<SegmentId>
      segments;              // kClose: which, in the order in which workers send: (t + i) mod n
  bool by_deadline = false;  // kClose: somebody expected is missing
  // kWait: whether the workers in session are enough for min_workers.
  bool enough_can_come = true;
  std::string reason;
};

// A segment closes when at least min_workers are in, and every expected worker is in, has
// abstained, or missed the deadline. It closes with fewer if every worker with samples has answered
// and some abstained, because no more can come. Workers that do not count are ignored in these
// rules. A round commits when all segments are closed.
RoundDecision Decide(const RoundFacts& round, absl::Duration now,
                     const RoundPolicyOptions& options);

}  // namespace distro::server
