#include "kernels/replica/host_update.h"

#include <atomic>
#include <utility>
#include <variant>

#include "absl/types/span.h"
#include "common/base/parallel.h"

namespace distro {

HostUpdater::HostUpdater(const Layout* layout, std::vector<Backend*> backends)
    : backends_(std::move(backends)), updater_(layout, AllRows(*layout)) {}

absl::StatusOr<std::vector<uint64_t>> HostUpdater::Update(const v1::StepParameters& step,
                                                          const DecodedRound& decoded,
                                                          TensorBuffer* parameters) const {
  std::atomic<bool> valid = true;
  std::vector<uint64_t> hashes =
      ForEachTile([&](const Tile& tile, Backend* backend, uint64_t* sum) {
        uint32_t invalid = kAllBlocksValid;
        const absl::Span<float> part = parameters->tensor(tile.part);
        std::visit(
            [&](const auto& results) {
              const auto of = [&](SegmentId s) { return OnHost(results[s.value()]); };
              updater_.Update(tile, step, of, backend, part, &invalid);
            },
            decoded);
        updater_.Hash(tile, backend, part, sum);
        if (invalid != kAllBlocksValid) valid = false;
      });
  if (!valid) return InvalidResult();
  return hashes;
}

std::vector<uint64_t> HostUpdater::Hash(const TensorBuffer& parameters) const {
  return ForEachTile([&](const Tile& tile, Backend* backend, uint64_t* sum) {
    updater_.Hash(tile, backend, parameters.tensor(tile.part), sum);
  });
}

std::vector<uint64_t> HostUpdater::ForEachTile(TileWork work) const {
  std::vector<uint64_t> sums(updater_.tiles().size());
  RunParallel(threads(), static_cast<int64_t>(sums.size()), [&](int thread, int64_t i) {
    work(updater_.tiles()[i], backends_[thread], &sums[i]);
  });
  std::vector<uint64_t> hashes(updater_.parts().size());
  for (size_t i = 0; i < sums.size(); ++i) hashes[updater_.tiles()[i].part] += sums[i];
  return hashes;
}

}  // namespace distro
