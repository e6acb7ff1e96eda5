#include "kernels/replica/replica.h"

#include <atomic>
#include <utility>

#include "absl/types/span.h"
#include "common/base/parallel.h"
#include "common/round_log/log_reference.h"
#include "kernels/cpu/cpu_backend.h"

namespace distro {

Replica::Replica(const Layout* layout, Backend* backend, TensorBuffer parameters,
                 RoundId next_round, uint64_t log_hash)
    : Replica(layout, std::vector<Backend*>{backend}, std::move(parameters), next_round, log_hash) {
}

Replica::Replica(const Layout* layout, std::vector<Backend*> backends, TensorBuffer parameters,
                 RoundId next_round, uint64_t log_hash)
    : AppliedLog(layout),
      backends_(std::move(backends)),
      updater_(layout, AllRows(*layout)),
      parameters_(std::move(parameters)) {
  Begin(next_round, log_hash, ForEachTile([&](const Tile& tile, Backend* backend, uint64_t* sum) {
          updater_.Hash(tile, backend, parameters_.tensor(tile.part), sum);
        }));
}

absl::Status Replica::Apply(const CommittedRound& round) {
  return ApplyNext(round, static_cast<int>(backends_.size()),
                   [this](const v1::StepParameters& step, const DecodedRound& decoded) {
                     return Update(step, decoded);
                   });
}

absl::StatusOr<std::vector<uint64_t>> Replica::Update(const v1::StepParameters& step,
                                                      const DecodedRound& decoded) {
  std::atomic<bool> valid = true;
  std::vector<uint64_t> hashes =
      ForEachTile([&](const Tile& tile, Backend* backend, uint64_t* sum) {
        uint32_t invalid = kAllVotesValid;
        const absl::Span<float> part = parameters_.tensor(tile.part);
        if (step.has_deltas()) {
          const auto deltas_of = [&](SegmentId segment) {
            return OnHost(decoded.deltas[segment.value()]);
          };
          updater_.Update(tile, step, deltas_of, backend, part, &invalid);
        } else {
          const auto votes_of = [&](SegmentId segment) {
            return OnHost(decoded.votes[segment.value()]);
          };
          updater_.Update(tile, step, votes_of, backend, part, &invalid);
        }
        updater_.Hash(tile, backend, part, sum);
        if (invalid != kAllVotesValid) valid = false;
      });
  if (!valid) return InvalidResult();
  return hashes;
}

std::vector<uint64_t> Replica::ForEachTile(TileWork work) {
  std::vector<uint64_t> sums(updater_.tiles().size());
  RunParallel(
      static_cast<int>(backends_.size()), static_cast<int64_t>(sums.size()),
      [&](int thread, int64_t i) { work(updater_.tiles()[i], backends_[thread], &sums[i]); });
  std::vector<uint64_t> hashes(parameters_.tensors());
  for (size_t i = 0; i < sums.size(); ++i) hashes[updater_.tiles()[i].part] += sums[i];
  return hashes;
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
