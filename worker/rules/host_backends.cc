#include "worker/rules/host_backends.h"

#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/deltas_backend.h"

namespace distro::worker {

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
