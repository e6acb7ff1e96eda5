// The update rule of one shard of the model, and the arrays that it works on. A learner
// (worker/node/learner.h) runs the operations of all shards at the same time: on the ranks of a
// node, or on threads.
//
// Not thread-safe: used on the shard's thread, or by others while that thread is idle.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "worker/rules/row_sums.h"
#include "worker/rules/update_rule.h"

namespace distro::worker {

// The arrays of a shard, one span per run, in the memory of its device; borrowed.
struct ShardArrays {
  RunSpans gradient;    // of a step; empty: the rule's caller takes the steps
  RunSpans parameters;  // of the replica
  RunSpans copy;        // the worker's; empty: none
};

// The bytes of f32 arrays as large as the model, [arrays][tensors].
using ElementBytes = std::vector<std::vector<absl::string_view>>;

class ShardRule {
 public:
  // `elements`: as of UpdateRuleKind::make. Pointers in `shard` are borrowed.
  ShardRule(RuleShard shard, const UpdateRuleKind& kind, std::vector<RunSpans> elements);

  UpdateRule& rule() { return *rule_; }
  const UpdateRule& rule() const { return *rule_; }
  const std::vector<ShardRun>& runs() const { return shard_.runs; }
  // The learner sets them before the operations that use them.
  ShardArrays& arrays() { return arrays_; }
  const ShardArrays& arrays() const { return arrays_; }

  // Sums the squares of the elements into `row_sums`, as RowSums::Of.
  absl::Status SumOf(const RunSpans& elements, absl::Span<double> row_sums) {
    return row_sums_.Of(elements, row_sums);
  }
  // The same of the outcome of the local steps, copy - parameters. Overwrites the gradient.
  absl::Status SumOfSteps(absl::Span<double> row_sums);
  // Scales the outcome: copy <- parameters + scale * (copy - parameters).
  absl::Status ScaleSteps(float scale);
  // Restores the rule's elements, the pending update, and the number of local steps.
  absl::Status Restore(const ElementBytes& elements, const std::optional<PendingUpdate>& pending,
                       uint64_t local_steps);
  // Spans of the shard's device in host memory: the originals, or copies that it adds to `memory`.
  absl::StatusOr<RunSpans> OnHost(const RunSpans& spans,
                                  std::vector<std::vector<float>>* memory) const;

 private:
  const RuleShard shard_;
  const std::unique_ptr<UpdateRule> rule_;
  RowSums row_sums_;
  ShardArrays arrays_;
};

}  // namespace distro::worker
