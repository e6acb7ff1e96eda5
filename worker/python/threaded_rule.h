// An update rule (worker/rules/update_rule.h) over whole tensors in the host's memory, executed
// by several threads. Each thread has a part of the block rows and its own rule for them. The
// worker's updates are independent of the number of threads.
//
//   ThreadedRule rule(&layout, &kind, /*threads=*/8);
//   rule.Compress(step, parameters, copy);
//   optimizer(&layout, &kind, rule.ranks());   // segments as payloads
//
// Arguments are arrays of whole tensors, [tensors], each f32 [elements]. Not thread-safe: its
// threads live as long as a call.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/layout/layout.h"
#include "common/layout/tensor_buffer.h"
#include "worker/rules/host_backends.h"
#include "worker/rules/optimizer.h"
#include "worker/rules/row_sums.h"
#include "worker/rules/update_rule.h"
#include "worker/state/state_file.h"

namespace distro::worker {

// The tensors of a buffer.
RunSpans SpansOf(TensorBuffer* buffer);

class ThreadedRule {
 public:
  // Pointers are borrowed. The rule's state is 0. Requires at least 1 thread.
  ThreadedRule(const Layout* layout, const UpdateRuleKind* kind, int threads);

  int threads() const { return static_cast<int>(parts_.size()); }
  // The rules to pass to an Optimizer.
  std::vector<RankRule> ranks() const;

  // As UpdateRule.
  absl::Status TakeGradient(const v1::StepParameters& step, int index, double norm,
                            const RunSpans& gradient);
  absl::StatusOr<bool> IsFinite(const v1::StepParameters& step, const RunSpans& parameters,
                                const RunSpans& copy);
  absl::Status Compress(const v1::StepParameters& step, const RunSpans& parameters,
                        const RunSpans& copy);
  absl::Status Abandon();
  absl::Status Forget();
  absl::Status Feedback(const CommittedRound& round, const DecodedRound& decoded, int member);
  absl::Status Lookahead(float eta, const RunSpans& parameters, const RunSpans& out);
  uint64_t local_steps() const { return parts_[0]->rule->local_steps(); }
  std::optional<DeltaSums> sums() const;

  // The norm of the local steps' result, copy - parameters, in f64.
  absl::StatusOr<double> NormOfSteps(const RunSpans& parameters, const RunSpans& copy);
  // copy <- parameters + scale * (copy - parameters).
  absl::Status ScaleSteps(float scale, const RunSpans& parameters, const RunSpans& copy);
  // The norm of the rule's first array, in f64.
  absl::StatusOr<double> MomentumNorm();
  // to <- from.
  absl::Status Copy(const RunSpans& from, const RunSpans& to);

  // Restores the state of an earlier process.
  absl::Status Restore(const StateReader::Contents& contents);

 private:
  struct Part {
    Part(int index, const Layout& layout, std::vector<ShardRun> runs);
    RunSpans Of(const RunSpans& tensors) const;

    const int number;
    const HostBackends host;
    const RuleShard shard;
    RowSums row_sums;
    std::unique_ptr<UpdateRule> rule;
  };

  // Calls work(part) for all parts in parallel; returns the first error.
  absl::Status ForEach(const std::function<absl::Status(Part& part)>& work);

  const Layout* const layout_;
  const UpdateRuleKind* const kind_;
  std::vector<TensorBuffer> elements_;  // of the rule
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace distro::worker
