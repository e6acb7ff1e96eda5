// The worker's half of the optimizer (docs/algorithm.md, "A worker's step"), over the update rules
// of its ranks: tracks the pending round, and assembles payloads and saved state. Payloads,
// feedback and state are independent of the sharding strategy and the number of ranks. It does not
// handle parameters or the steps of a rule.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/model/layout/layout.h"
#include "common/run/record/committed_round.h"
#include "worker/rules/update_rule.h"

namespace distro::worker {

// The round whose update was sent and whose result is not known yet.
struct PendingRound {
  RoundId round;
  int k = 0;
};

// The rule of one rank, and the runs that it has.
struct RankRule {
  const UpdateRule* rule = nullptr;
  absl::Span<const ShardRun> runs;
};

class Optimizer {
 public:
  // Everything is borrowed and outlives the optimizer. Requires rules of `kind` that together hold
  // every block exactly once. (Ranks with further copies are not passed.)
  Optimizer(const Layout* layout, const UpdateRuleKind* kind, const std::vector<RankRule>& ranks);

  // Sets the round of the rules' pending update. An earlier one counts as not included.
  void SetPending(const PendingRound& pending) { pending_ = pending; }
  const std::optional<PendingRound>& pending() const { return pending_; }
  // Drops the pending update as not included.
  void ForgetPending() { pending_.reset(); }
  // Whether the pending update is of this round. If so, it is no longer pending, and the caller
  // must apply the rules' feedback.
  bool TakePending(RoundId round);

  // The payloads [segments], encoded on `threads` threads; every call returns the same bytes.
  // Requires pending() and threads >= 1.
  std::vector<SharedBytes> Encode(int threads) const;

  // A segment's pending update, in the pieces held by the rules. Requires pending().
  BlockPieces PendingPieces(SegmentId segment) const;

  const Layout& layout() const { return *layout_; }
  const UpdateRuleKind& kind() const { return *kind_; }

 private:
  // A run: blocks of the model that are consecutive in a rule's pending arrays.
  struct Piece {
    const UpdateRule* rule = nullptr;
    int64_t first_block = 0;  // among the blocks of the model
    int64_t blocks = 0;
    int64_t first_pending = 0;  // in the rule's pending arrays, in blocks
  };
  static std::vector<Piece> PiecesOf(const Layout& layout, const std::vector<RankRule>& ranks);

  const Layout* const layout_;
  const UpdateRuleKind* const kind_;
  const std::vector<Piece> pieces_;  // ascending by first_block: all blocks
  std::optional<PendingRound> pending_;
};

}  // namespace distro::worker
