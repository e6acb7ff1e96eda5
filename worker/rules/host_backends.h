// The backends of a rule whose state is in host memory, for callers that use a rule without a node.
//
//   HostBackends host;
//   DeltaRule rule(host.Of({.layout = &layout, .runs = WholeRuns(layout)}), ...);
#pragma once

#include <memory>

#include "kernels/backend.h"
#include "kernels/deltas_backend.h"
#include "kernels/device.h"
#include "worker/rules/deltas/inner_backend.h"
#include "worker/rules/deltas/orthogonalizer.h"
#include "worker/rules/update_rule.h"

namespace distro::worker {

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
