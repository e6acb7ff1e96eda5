#include "worker/plan/matrix_waves.h"

#include <algorithm>

namespace distro::worker {
namespace {

constexpr int64_t kWidestAlignment = 32;  // of the kernels' matrices, elements

int64_t Padded(int64_t side) {
  return (side + kWidestAlignment - 1) / kWidestAlignment * kWidestAlignment;
}

// Operations of an iteration, but for a factor.
double CostOf(const MatrixShape& matrix) {
  const auto shorter = static_cast<double>(std::min(matrix.rows, matrix.cols));
  const auto longer = static_cast<double>(std::max(matrix.rows, matrix.cols));
  return 2 * shorter * shorter * longer + shorter * shorter * shorter;
}

int64_t PartOf(const ShardPlan& shards, int rank, int tensor) {
  int64_t elements = 0;
  for (const ShardRun& run : shards.shard(rank).runs)
    elements += run.tensor == tensor ? run.matrix.elements : 0;
  return elements;
}

}  // namespace

std::vector<MatrixWave> MatrixWaves(const Layout& layout, const std::vector<bool>& needs_whole,
                                    int ranks) {
  std::vector<int> order;
  for (size_t i = 0; i < needs_whole.size(); ++i) {
    if (needs_whole[i]) order.push_back(static_cast<int>(i));
  }
  const auto cost = [&](int tensor) { return CostOf(layout.tensors()[tensor].matrix); };
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return cost(a) > cost(b); });
  std::vector<MatrixWave> waves;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i % ranks == 0) waves.emplace_back();
    waves.back().matrices.push_back(order[i]);
  }
  return waves;
}

std::vector<int64_t> WaveCounts(const ShardPlan& shards, const MatrixWave& wave) {
  const int ranks = shards.ranks();
  std::vector<int64_t> counts(static_cast<size_t>(ranks) * ranks, 0);
  for (int from = 0; from < ranks; ++from) {
    for (size_t to = 0; to < wave.matrices.size(); ++to)
      counts[from * ranks + to] = PartOf(shards, from, wave.matrices[to]);
  }
  return counts;
}

int64_t NewtonSchulzBytes(const MatrixShape& matrix) {
  const int64_t r = Padded(std::min(matrix.rows, matrix.cols));
  const int64_t c = Padded(std::max(matrix.rows, matrix.cols));
  return (3 * r * c + 2 * r * r) * static_cast<int64_t>(sizeof(float));
}

int64_t WaveScratchBytes(const Layout& layout, const std::vector<MatrixWave>& waves,
                         const ShardPlan* shards, int rank) {
  const bool moves = shards != nullptr && shards->ranks() > 1;
  int64_t most = 0;
  for (const MatrixWave& wave : waves) {
    int64_t elements = 0, scratch = 0;
    for (const int tensor : wave.matrices) {
      elements += moves ? PartOf(*shards, rank, tensor) : layout.tensors()[tensor].matrix.elements;
    }
    if (rank < static_cast<int>(wave.matrices.size())) {
      const MatrixShape& own = layout.tensors()[wave.matrices[rank]].matrix;
      if (moves) elements += own.elements;
      scratch = NewtonSchulzBytes(own);
    }
    most = std::max(most, elements * static_cast<int64_t>(sizeof(float)) + scratch);
  }
  return most;
}

}  // namespace distro::worker
