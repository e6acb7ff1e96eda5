// A run of the deltas method in the lab (docs/algorithm.md, "Deltas"): the optimizer of a real
// worker (worker/rules/deltas/delta_rule.h) and the arithmetic of a real aggregator and replica, in
// a loop without messages or protocol; and variants of both that the real system does not have
// (deltas_settings.h). All replicas are the same bits, so there is one; workers share threads.
#pragma once

#include <cstdint>
#include <map>

#include "absl/status/statusor.h"
#include "bench/convergence/curve.h"
#include "bench/convergence/deltas_settings.h"
#include "server/log/run_identity.h"
#include "worker/data/token_file.h"

namespace distro::worker {

struct DeltasLearned {
  Curve curve;
  // The first round after which a worker was suspected, by worker.
  std::map<int, uint64_t> suspected;
};

// Trains the run, whose `rounds` counts inner steps and whose rates are those of inner steps;
// kept_per_block and beta are those of the settings. Bytes are those of the first worker. Requires
// threads >= 1. InvalidArgument: more than one segment, or settings that do not fit the run. Other
// statuses as of Model and SampleReader.
absl::StatusOr<DeltasLearned> RunDeltas(const server::RunIdentity& run, const TokenSource& tokens,
                                        const DeltasSettings& settings, int threads);

}  // namespace distro::worker
