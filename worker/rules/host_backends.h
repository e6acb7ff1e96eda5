// The backends of a rule whose state is in host memory, and the spans of whole tensors there, for
// callers that use a rule without a node.
//
//   HostBackends host;
//   DeltaRule rule(host.Of({.layout = &layout, .runs = WholeRuns(layout)}), ...);
#pragma once

#include <memory>

#include "absl/types/span.h"
#include "common/model/layout/tensor_buffer.h"
#include "kernels/backend.h"
#include "kernels/deltas_backend.h"
#include "kernels/device.h"
#include "worker/rules/deltas/inner_backend.h"
#include "worker/rules/deltas/orthogonalizer.h"
#include "worker/rules/update_rule.h"

namespace distro::worker {

// The tensors of a buffer, [tensors].
RunSpans SpansOf(TensorBuffer* buffer);
// The elements of the runs in whole tensors, [runs].
RunSpans RunsOf(absl::Span<const ShardRun> runs, const RunSpans& tensors);

// Not thread-safe; outlives the rules.
class HostBackends {
 public:
  HostBackends();

  // The shard, which borrows these.
  RuleShard Of(RuleShard shard) const;

 private:
  const std::unique_ptr<Backend> backend_;
  const std::unique_ptr<Device> device_;
  const std::unique_ptr<DeltaBackend> deltas_;
  const std::unique_ptr<InnerBackend> inner_;
  const std::unique_ptr<Orthogonalizer> orthogonalizer_;
};

}  // namespace distro::worker
