#include "worker/optimizer/whole_matrices.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "worker/optimizer/rank_exchange.h"

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
  for (const MatrixWave& wave : MatrixWaves(*layout_, needs_whole, ranks_)) {
    waves_.push_back(WaveOf(wave, shard.runs));
    waves_.back().name = absl::StrCat("directions of wave ", waves_.size());
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
  for (const Wave& wave : waves_) {
    // Allocated here and not kept: between two steps activations use the memory.
    DISTRO_ASSIGN_OR_RETURN(const SharedFloats directions,
                            orthogonalizer_->Allocate(wave.elements));
    const auto of = [&](const Part& part) {
      return directions.floats().subspan(part.offset, part.elements);
    };
    for (const Part& part : wave.parts) DISTRO_RETURN_IF_ERROR(make(part.run, of(part)));
    DISTRO_RETURN_IF_ERROR(OrthogonalizeWave(wave, directions));
    for (const Part& part : wave.parts) DISTRO_RETURN_IF_ERROR(use(part.run, of(part)));
  }
  return absl::OkStatus();
}

absl::Status WholeMatrices::OrthogonalizeWave(const Wave& wave,
                                              const SharedFloats& directions) const {
  if (wave.to_owners.empty()) {
    const int64_t begin = wave.cuts[rank_], end = wave.cuts[rank_ + 1];
    DISTRO_RETURN_IF_ERROR(
        NewtonSchulzOf(wave.own, directions.floats().subspan(begin, end - begin)));
    if (exchange_ == nullptr) return absl::OkStatus();
    return exchange_->AllGather(wave.name, wave.cuts, directions);
  }
  const int64_t own = wave.own < 0 ? 0 : layout_->tensors()[wave.own].matrix.elements;
  DISTRO_ASSIGN_OR_RETURN(const SharedFloats matrix, orthogonalizer_->Allocate(own));
  DISTRO_RETURN_IF_ERROR(exchange_->AllToAll(wave.name, wave.to_owners, directions, matrix));
  DISTRO_RETURN_IF_ERROR(NewtonSchulzOf(wave.own, matrix.floats()));
  return exchange_->AllToAll(wave.name, wave.to_holders, matrix, directions);
}

absl::Status WholeMatrices::NewtonSchulzOf(int tensor, absl::Span<float> matrix) const {
  if (tensor < 0) return absl::OkStatus();
  const MatrixShape& shape = layout_->tensors()[tensor].matrix;
  return orthogonalizer_->NewtonSchulz(shape.rows, shape.cols, iterations_, matrix);
}

}  // namespace distro::worker
