// The identity of a run on the small layout, for tests of the aggregator.
#pragma once

#include <memory>

#include "common/method/deltas/rounds.h"
#include "common/method/signs/rounds.h"
#include "common/run/run_config.h"
#include "server/log/run_identity.h"
#include "tests/testing/small_run.h"

namespace distro::testing {

inline std::shared_ptr<const server::RunIdentity> SmallRun(const v1::RunConfig& config) {
  auto run = std::make_shared<server::RunIdentity>();
  run->run_id = "small-0001";
  run->config = *CompleteRunConfig(config);
  run->layout = std::make_shared<const Layout>(SmallLayout());
  run->method = run->config.method() == v1::METHOD_DELTAS
                    ? MakeDeltaRounds(run->config, run->layout, {true, false, false})
                    : MakeSignRounds(run->config, run->layout);
  run->initial_snapshot.set_state_hash(kInitialStateHash);
  return run;
}

}  // namespace distro::testing
