#include "kernels/replica/replica.h"

#include <utility>

#include "common/run/record/log_reference.h"
#include "kernels/cpu/cpu_backend.h"

namespace distro {

Replica::Replica(const Layout* layout, Backend* backend, TensorBuffer parameters,
                 RoundId next_round, uint64_t log_hash)
    : Replica(layout, std::vector<Backend*>{backend}, std::move(parameters), next_round, log_hash) {
}

Replica::Replica(const Layout* layout, std::vector<Backend*> backends, TensorBuffer parameters,
                 RoundId next_round, uint64_t log_hash)
    : AppliedLog(layout),
      updater_(layout, std::move(backends)),
      parameters_(std::move(parameters)) {
  Begin(next_round, log_hash, updater_.Hash(parameters_));
}

absl::Status Replica::Apply(const CommittedRound& round) {
  return ApplyNext(round, updater_.threads(),
                   [this](const v1::StepParameters& step, const DecodedRound& decoded) {
                     return updater_.Update(step, decoded, &parameters_);
                   });
}

uint64_t StateHash(const Layout& layout, const TensorBuffer& parameters, Backend* backend) {
  std::vector<uint64_t> sums(layout.tensors().size());
  for (int i = 0; i < parameters.tensors(); ++i)
    backend->StateHash(0, parameters.tensor(i), &sums[i]);
  return CombineTensorHashes(sums);
}

uint64_t StateHashOnCpu(const Layout& layout, const TensorBuffer& parameters) {
  return StateHash(layout, parameters, MakeCpuBackend().get());
}

}  // namespace distro
