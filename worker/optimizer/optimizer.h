// The worker's half of the optimizer (docs/algorithm.md, "A worker's step") over the update rules
// of its ranks: what is decided once a worker, and what leaves it. Its bytes do not show how the
// model is cut: the same payloads, feedback and state for every sharding strategy and number of
// ranks. Parameters are not its business, nor what a rule does.
//
// Not thread-safe, except that EncodeSegment may be called from several threads.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/ids.h"
#include "common/layout/layout.h"
#include "common/layout/tensor_buffer.h"
#include "common/round_log/committed_round.h"
#include "worker/optimizer/update_rule.h"

namespace distro::worker {

// The round whose update was handed in and whose result is not known.
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
  // every block once. (Further ranks may hold copies that do the same: they do not matter here.)
  Optimizer(const Layout* layout, const UpdateRuleKind* kind, std::vector<RankRule> ranks);

  // What the rules hold as pending is of this round. What was pending before counts as not
  // included.
  void SetPending(const PendingRound& pending) { pending_ = pending; }
  const std::optional<PendingRound>& pending() const { return pending_; }
  // What is pending counts as not included.
  void ForgetPending() { pending_.reset(); }
  // Whether what is pending is of this round: the rules then have to take its feedback, and nothing
  // is pending any more.
  bool TakePending(RoundId round);

  // The payload of a segment; the same bytes as often as it is asked for. Requires pending().
  SharedBytes EncodeSegment(SegmentId segment) const;

  // Array `array` of what is pending of a segment, in order, as the pieces in which the rules hold
  // it. Requires pending().
  std::vector<absl::string_view> PendingPieces(SegmentId segment, int array) const;
  // The rules' element arrays where they are: of every tensor its runs, in order. Requires rules in
  // the host's memory.
  std::vector<TensorPieces> elements() const;

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
  const std::vector<RankRule> ranks_;
  const std::vector<Piece> pieces_;  // ascending by first_block: all blocks
  std::optional<PendingRound> pending_;
};

}  // namespace distro::worker
