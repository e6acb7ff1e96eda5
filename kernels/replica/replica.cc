#include "kernels/replica/replica.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/parallel.h"
#include "common/base/status_macros.h"
#include "common/base/status_util.h"
#include "common/round_log/log_reference.h"

namespace distro {

Replica::Replica(const Layout* layout, Backend* backend, TensorBuffer parameters,
                 RoundId next_round, uint64_t log_hash)
    : Replica(layout, std::vector<Backend*>{backend}, std::move(parameters), next_round, log_hash) {
}

Replica::Replica(const Layout* layout, std::vector<Backend*> backends, TensorBuffer parameters,
                 RoundId next_round, uint64_t log_hash)
    : layout_(layout),
      backends_(std::move(backends)),
      updater_(layout, AllRows(*layout)),
      parameters_(std::move(parameters)),
      tensor_hashes_(parameters_.tensors()),
      next_round_(next_round),
      log_hash_(log_hash) {
  std::vector<uint64_t> hashes(updater_.tiles().size());
  RunParallel(static_cast<int>(backends_.size()), static_cast<int64_t>(hashes.size()),
              [&](int thread, int64_t i) { hashes[i] = HashTile(i, backends_[thread]); });
  AddTileHashes(hashes);
}

template <typename Work>
absl::Status Replica::ForEach(size_t items, const Work& work) {
  std::vector<absl::Status> results(items);
  RunParallel(static_cast<int>(backends_.size()), static_cast<int64_t>(items),
              [&](int thread, int64_t i) { results[i] = work(i, backends_[thread]); });
  const auto failed = std::find_if(results.begin(), results.end(),
                                   [](const absl::Status& status) { return !status.ok(); });
  return failed == results.end() ? absl::OkStatus() : *failed;
}

absl::Status Replica::Apply(const CommittedRound& round) {
  const std::string where = absl::StrCat("round ", round.round().value());
  DISTRO_RETURN_IF_ERROR(CheckContinues(round, next_round_, log_hash_));
  const absl::StatusOr<std::vector<Votes>> votes =
      DecodeRound(*layout_, round, static_cast<int>(backends_.size()));
  DISTRO_RETURN_IF_ERROR(Annotate(votes.status(), where));
  DISTRO_RETURN_IF_ERROR(Annotate(Update(round.header->step(), *votes), where));
  next_round_ = next_round_.Next();
  log_hash_ = round.hash;
  return absl::OkStatus();
}

absl::Status Replica::Update(const v1::StepParameters& step, const std::vector<Votes>& votes) {
  std::vector<uint64_t> hashes(updater_.tiles().size());
  const absl::Status status = ForEach(hashes.size(), [&](size_t i, Backend* backend) {
    const Tile& tile = updater_.tiles()[i];
    const absl::Status updated =
        updater_.Update(tile, step, votes, backend, parameters_.tensor(tile.part));
    hashes[i] = HashTile(i, backend);
    return updated;
  });
  DISTRO_RETURN_IF_ERROR(status);
  std::fill(tensor_hashes_.begin(), tensor_hashes_.end(), 0);
  AddTileHashes(hashes);
  return absl::OkStatus();
}

uint64_t Replica::HashTile(size_t i, Backend* backend) const {
  const Tile& tile = updater_.tiles()[i];
  return updater_.Hash(tile, backend, parameters_.tensor(tile.part));
}

void Replica::AddTileHashes(const std::vector<uint64_t>& hashes) {
  for (size_t i = 0; i < hashes.size(); ++i) tensor_hashes_[updater_.tiles()[i].part] += hashes[i];
}

uint64_t Replica::StateHash() const { return CombineTensorHashes(tensor_hashes_); }

uint64_t StateHash(const Layout& layout, const TensorBuffer& parameters, Backend* backend) {
  std::vector<uint64_t> sums(layout.tensors().size());
  for (int i = 0; i < parameters.tensors(); ++i) {
    sums[i] = backend->StateHash(0, parameters.tensor(i));
  }
  return CombineTensorHashes(sums);
}

}  // namespace distro
