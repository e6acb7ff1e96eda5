// Maps the blocks of a rank's runs to the segments of the model, for feedback and restored state of
// both methods. Pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/model/layout/layout.h"
#include "kernels/block.h"
#include "worker/plan/shard_plan.h"
#include "worker/rules/update_rule.h"

namespace distro::worker {

// Consecutive blocks of a run that lie in one segment.
struct SegmentPart {
  size_t run = 0;
  BlockRange blocks;          // of the run's matrix
  int64_t first_pending = 0;  // among the blocks of all runs, run after run
  SegmentId segment;
  int64_t first_in_segment = 0;
};

// All blocks of the runs, run after run. A segment may begin or end inside a run.
std::vector<SegmentPart> SegmentParts(const Layout& layout, absl::Span<const ShardRun> runs);

// The parts' bytes of the whole model's pending update, one piece a part; `block_bytes`: of
// UpdateRuleKind. Requires an update accepted by UpdateRuleKind::check.
BlockPieces PendingOfParts(absl::Span<const SegmentPart> parts, const PendingUpdate& pending,
                           absl::Span<const int64_t> block_bytes);

}  // namespace distro::worker
