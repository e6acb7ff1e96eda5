// The shards of an update rule over whole tensors in the host's memory, one a thread. Each has a
// part of the block rows. Updates are independent of the number of threads.
//
// Arguments are arrays of whole tensors, [tensors], each f32 [elements]. Not thread-safe: its
// threads live as long as a call.
#pragma once

#include <memory>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"
#include "worker/rules/host_backends.h"
#include "worker/rules/shard_rule.h"
#include "worker/rules/update_rule.h"

namespace distro::worker {

class ThreadShards {
 public:
  // The rule's state is 0; the rules' parameters are those of the buffer. Pointers are borrowed.
  // Requires at least 1 thread.
  ThreadShards(const Layout* layout, const UpdateRuleKind& kind, int threads,
               TensorBuffer* parameters);

  std::vector<ShardRule*> shards() const;
  // Set the arrays of all shards.
  void SetGradient(const RunSpans& tensors);
  void SetCopy(const RunSpans& tensors);

  // Calls work(shard, number) for all shards in parallel; returns the first error.
  absl::Status ForEach(absl::FunctionRef<absl::Status(ShardRule& shard, int number)> work) const;

 private:
  struct Part {
    Part(const Layout& layout, const UpdateRuleKind& kind, std::vector<ShardRun> runs,
         std::vector<TensorBuffer>* elements, TensorBuffer* parameters);

    const HostBackends host;
    ShardRule rule;
  };

  std::vector<TensorBuffer> elements_;  // of the rule
  std::vector<std::unique_ptr<Part>> parts_;
};

}  // namespace distro::worker
