#include "worker/rules/host_backends.h"

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/deltas_backend.h"

namespace distro::worker {

RunSpans SpansOf(TensorBuffer* buffer) {
  RunSpans spans;
  for (int i = 0; i < buffer->tensors(); ++i) spans.push_back(buffer->tensor(i));
  return spans;
}

RunSpans RunsOf(absl::Span<const ShardRun> runs, const RunSpans& tensors) {
  RunSpans spans;
  for (const ShardRun& run : runs)
    spans.push_back(tensors[run.tensor].subspan(run.first_element, run.matrix.elements));
  return spans;
}

HostBackends::HostBackends()
    : backend_(MakeCpuBackend()),
      device_(MakeHostDevice()),
      deltas_(MakeCpuDeltaBackend()),
      inner_(MakeCpuInnerBackend()),
      orthogonalizer_(MakeCpuOrthogonalizer()) {}

RuleShard HostBackends::Of(RuleShard shard) const {
  shard.backend = backend_.get();
  shard.device = device_.get();
  shard.deltas = deltas_.get();
  shard.inner = inner_.get();
  shard.orthogonalizer = orthogonalizer_.get();
  return shard;
}

}  // namespace distro::worker
