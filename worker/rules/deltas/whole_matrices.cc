#include "worker/rules/deltas/whole_matrices.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/rules/rank_exchange.h"

namespace distro::worker {
namespace {

std::vector<int64_t> Transposed(const std::vector<int64_t>& counts, int ranks) {
  std::vector<int64_t> transposed(counts.size());
  for (int from = 0; from < ranks; ++from) {
    for (int to = 0; to < ranks; ++to) transposed[to * ranks + from] = counts[from * ranks + to];
  }
  return transposed;
}

}  // namespace

WholeMatrices::WholeMatrices(const RuleShard& shard, const std::vector<bool>& needs_whole,
                             int iterations)
    : layout_(shard.layout),
      shards_(shard.shards),
      orthogonalizer_(shard.orthogonalizer),
      exchange_(shard.exchange),
      ranks_(exchange_ == nullptr ? 1 : exchange_->ranks()),
      rank_(exchange_ == nullptr ? 0 : exchange_->rank()),
      iterations_(iterations) {
  const std::vector<MatrixWave> waves =
      MatrixWaves(*layout_, needs_whole, ranks_, orthogonalizer_->batch_elements());
  for (size_t i = 0; i < waves.size(); ++i) {
    if (i == 0 || waves[i].batch != waves[i - 1].batch) batches_.emplace_back();
    batches_.back().push_back(WaveOf(waves[i], shard.runs));
    batches_.back().back().name = absl::StrCat("directions of wave ", i + 1);
  }
}

WholeMatrices::Wave WholeMatrices::WaveOf(const MatrixWave& matrices,
                                          absl::Span<const ShardRun> runs) const {
  Wave wave;
  wave.cuts = {0};
  for (const int tensor : matrices.matrices) {
    for (size_t i = 0; i < runs.size(); ++i) {
      if (runs[i].tensor != tensor) continue;
      wave.parts.push_back(
          {.run = i, .offset = wave.elements, .elements = runs[i].matrix.elements});
      wave.elements += runs[i].matrix.elements;
    }
    wave.cuts.push_back(wave.elements);
  }
  wave.cuts.resize(ranks_ + 1, wave.elements);
  if (rank_ < static_cast<int>(matrices.matrices.size())) wave.own = matrices.matrices[rank_];
  if (shards_ == nullptr || exchange_ == nullptr) return wave;
  wave.to_owners = WaveCounts(*shards_, matrices);
  wave.to_holders = Transposed(wave.to_owners, ranks_);
  return wave;
}

absl::Status WholeMatrices::Orthogonalize(
    absl::FunctionRef<absl::Status(size_t run, absl::Span<float> direction)> make,
    absl::FunctionRef<absl::Status(size_t run, absl::Span<const float> direction)> use) const {
  for (const Batch& batch : batches_) {
    OfWaves directions;
    const auto of = [&](size_t wave, const Part& part) {
      return directions[wave].floats().subspan(part.offset, part.elements);
    };
    for (size_t i = 0; i < batch.size(); ++i) {
      // Allocated here and not kept: between two steps activations use the memory.
      DISTRO_ASSIGN_OR_RETURN(SharedFloats memory, orthogonalizer_->Allocate(batch[i].elements));
      directions.push_back(std::move(memory));
      for (const Part& part : batch[i].parts) DISTRO_RETURN_IF_ERROR(make(part.run, of(i, part)));
    }
    DISTRO_RETURN_IF_ERROR(OrthogonalizeBatch(batch, directions));
    for (size_t i = 0; i < batch.size(); ++i) {
      for (const Part& part : batch[i].parts) DISTRO_RETURN_IF_ERROR(use(part.run, of(i, part)));
    }
  }
  return absl::OkStatus();
}

absl::Status WholeMatrices::OrthogonalizeBatch(const Batch& batch,
                                               const OfWaves& directions) const {
  OfWaves matrices;
  for (size_t i = 0; i < batch.size(); ++i) {
    DISTRO_ASSIGN_OR_RETURN(SharedFloats matrix, Collect(batch[i], directions[i]));
    matrices.push_back(std::move(matrix));
  }
  DISTRO_RETURN_IF_ERROR(NewtonSchulzOf(batch, matrices));
  for (size_t i = 0; i < batch.size(); ++i)
    DISTRO_RETURN_IF_ERROR(Distribute(batch[i], matrices[i], directions[i]));
  return absl::OkStatus();
}

absl::StatusOr<SharedFloats> WholeMatrices::Collect(const Wave& wave,
                                                    const SharedFloats& directions) const {
  if (wave.to_owners.empty()) {
    const int64_t begin = wave.cuts[rank_], end = wave.cuts[rank_ + 1];
    return SharedFloats(directions.floats().subspan(begin, end - begin), directions.owner());
  }
  const int64_t own = wave.own < 0 ? 0 : layout_->tensors()[wave.own].matrix.elements;
  DISTRO_ASSIGN_OR_RETURN(SharedFloats matrix, orthogonalizer_->Allocate(own));
  DISTRO_RETURN_IF_ERROR(exchange_->AllToAll(wave.name, wave.to_owners, directions, matrix));
  return matrix;
}

absl::Status WholeMatrices::NewtonSchulzOf(const Batch& batch, const OfWaves& matrices) const {
  std::vector<absl::Span<float>> own;
  for (size_t i = 0; i < batch.size(); ++i) {
    if (batch[i].own >= 0) own.push_back(matrices[i].floats());
  }
  if (own.empty()) return absl::OkStatus();
  const MatrixShape& shape = layout_->tensors()[batch[0].own].matrix;
  return orthogonalizer_->NewtonSchulz(shape.rows, shape.cols, iterations_, own);
}

absl::Status WholeMatrices::Distribute(const Wave& wave, const SharedFloats& matrix,
                                       const SharedFloats& directions) const {
  if (!wave.to_owners.empty())
    return exchange_->AllToAll(wave.name, wave.to_holders, matrix, directions);
  if (exchange_ == nullptr) return absl::OkStatus();
  return exchange_->AllGather(wave.name, wave.cuts, directions);
}

}  // namespace distro::worker
