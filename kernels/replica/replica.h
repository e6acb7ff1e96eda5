// Applies the rounds of the log to whole parameters in host memory: for the archiver, `distroctl`
// and the aggregator's check of snapshots. Parameters at round r are a pure function of (snapshot,
// rounds up to r), bit for bit on any machine.
//
//   Replica replica(&layout, backend.get(), std::move(parameters), next_round, log_hash);
//   DISTRO_RETURN_IF_ERROR(replica.Apply(committed_round));
//
// Not thread-safe: readers of parameters() synchronise with Apply themselves. Apply uses one thread
// per backend; their number does not change the result.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/model/layout/layout.h"
#include "common/model/layout/tensor_buffer.h"
#include "common/run/record/applied_log.h"
#include "common/run/record/committed_round.h"
#include "kernels/backend.h"
#include "kernels/replica/host_update.h"

namespace distro {

class Replica : public AppliedLog {
 public:
  // `layout` and `backend`, of a CPU, are borrowed and outlive the replica. `parameters` are those
  // before `next_round`.
  Replica(const Layout* layout, Backend* backend, TensorBuffer parameters, RoundId next_round,
          uint64_t log_hash);
  // The same with a thread for each of `backends`, at least one.
  Replica(const Layout* layout, std::vector<Backend*> backends, TensorBuffer parameters,
          RoundId next_round, uint64_t log_hash);

  // Decodes every segment, then updates the parameters. Applies all of the round or nothing;
  // statuses as AppliedLog::ApplyNext.
  absl::Status Apply(const CommittedRound& round);

  const TensorBuffer& parameters() const { return parameters_; }

 private:
  const HostUpdater updater_;
  TensorBuffer parameters_;
};

// The state hash of any parameters.
uint64_t StateHash(const Layout& layout, const TensorBuffer& parameters, Backend* backend);
uint64_t StateHashOnCpu(const Layout& layout, const TensorBuffer& parameters);

}  // namespace distro
