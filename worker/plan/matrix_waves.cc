#include "worker/plan/matrix_waves.h"

#include <algorithm>
#include <utility>

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

// Whether the ranks' matrices have the shapes of `first`'s; a later wave may have fewer of them.
bool HasShapesOf(const MatrixWave& first, const MatrixWave& wave, const Layout& layout) {
  for (size_t rank = 0; rank < wave.matrices.size(); ++rank) {
    const MatrixShape& a = layout.tensors()[first.matrices[rank]].matrix;
    const MatrixShape& b = layout.tensors()[wave.matrices[rank]].matrix;
    if (a.rows != b.rows || a.cols != b.cols) return false;
  }
  return true;
}

void MakeBatches(const Layout& layout, int64_t batch_elements, std::vector<MatrixWave>* waves) {
  size_t first = 0;
  int64_t elements = 0;  // of a rank in the batch
  for (size_t i = 0; i < waves->size(); ++i) {
    MatrixWave& wave = (*waves)[i];
    int64_t most = 0;
    for (const int tensor : wave.matrices)
      most = std::max(most, layout.tensors()[tensor].matrix.elements);
    elements += most;
    if (elements > batch_elements || !HasShapesOf((*waves)[first], wave, layout)) {
      first = i;
      elements = most;
    }
    wave.batch = static_cast<int>(first);
  }
}

// What the rank needs for a wave. `moves`: it gets its matrix from other ranks.
int64_t ScratchOf(const Layout& layout, const MatrixWave& wave, const ShardPlan* shards, int rank,
                  bool moves) {
  int64_t elements = 0, scratch = 0;
  for (const int tensor : wave.matrices)
    elements += moves ? PartOf(*shards, rank, tensor) : layout.tensors()[tensor].matrix.elements;
  if (rank < static_cast<int>(wave.matrices.size())) {
    const MatrixShape& own = layout.tensors()[wave.matrices[rank]].matrix;
    if (moves) elements += own.elements;
    scratch = NewtonSchulzBytes(own);
  }
  return elements * static_cast<int64_t>(sizeof(float)) + scratch;
}

}  // namespace

std::vector<MatrixWave> MatrixWaves(const Layout& layout, const std::vector<bool>& needs_whole,
                                    int ranks, int64_t batch_elements) {
  std::vector<int> order;
  for (size_t i = 0; i < needs_whole.size(); ++i) {
    if (needs_whole[i]) order.push_back(static_cast<int>(i));
  }
  // Matrices of one cost with as many rows have one shape.
  const auto order_of = [&](int tensor) {
    const MatrixShape& matrix = layout.tensors()[tensor].matrix;
    return std::pair(CostOf(matrix), matrix.rows);
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return order_of(a) > order_of(b); });
  std::vector<MatrixWave> waves;
  for (size_t i = 0; i < order.size(); ++i) {
    if (i % ranks == 0) waves.emplace_back();
    waves.back().matrices.push_back(order[i]);
  }
  MakeBatches(layout, batch_elements, &waves);
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
  int64_t most = 0, of_batch = 0;
  for (size_t i = 0; i < waves.size(); ++i) {
    if (i > 0 && waves[i].batch != waves[i - 1].batch) of_batch = 0;
    of_batch += ScratchOf(layout, waves[i], shards, rank, moves);
    most = std::max(most, of_batch);
  }
  return most;
}

}  // namespace distro::worker
