// The measured run: W workers in threads of one process. All is as in a real run, except that the
// exchange is local (bench/local/local_aggregator.h), with a LabExchange for each worker.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "bench/convergence/curve.h"
#include "bench/convergence/lab_exchange.h"
#include "server/log/run_identity.h"
#include "worker/data/token_file.h"

namespace distro::worker {

struct VirtualWorkersOptions {
  std::vector<LabLink> links;   // [W]: of the workers in the order of their names
  int micro_batch_samples = 0;  // as TrainerOptions
};

// Trains the run, whose start_workers is W. The curve is that of the first worker; every worker's
// parameters are the same bits. No worker is quarantined, whatever it sends, since that would leave
// fewer than min_workers.
absl::StatusOr<Curve> RunVirtualWorkers(server::RunIdentity run, const TokenSource& tokens,
                                        const VirtualWorkersOptions& options);

}  // namespace distro::worker
