#include "worker/optimizer/whole_matrices.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "kernels/cpu/cpu_backend.h"
#include "kernels/cpu/newton_schulz.h"
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
      exchange_(shard.exchange),
      iterations_(iterations) {
  const int ranks = exchange_ == nullptr ? 1 : exchange_->ranks();
  for (const MatrixWave& wave : MatrixWaves(*layout_, needs_whole, ranks)) {
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
  const int ranks = exchange_ == nullptr ? 1 : exchange_->ranks();
  const int rank = exchange_ == nullptr ? 0 : exchange_->rank();
  wave.cuts.resize(ranks + 1, wave.elements);
  if (rank < static_cast<int>(matrices.matrices.size())) wave.own = matrices.matrices[rank];
  if (shards_ == nullptr || exchange_ == nullptr) return wave;
  wave.to_owners = WaveCounts(*shards_, matrices);
  wave.to_holders = Transposed(wave.to_owners, ranks);
  return wave;
}

absl::Status WholeMatrices::Orthogonalize(
    absl::FunctionRef<void(size_t run, absl::Span<float> direction)> make,
    absl::FunctionRef<void(size_t run, absl::Span<const float> direction)> use) const {
  for (const Wave& wave : waves_) {
    // Here and not kept: between two steps the memory is the activations'.
    const auto directions = std::make_shared<std::vector<float>>(wave.elements);
    const auto of = [&](const Part& part) {
      return absl::MakeSpan(*directions).subspan(part.offset, part.elements);
    };
    for (const Part& part : wave.parts) make(part.run, of(part));
    DISTRO_RETURN_IF_ERROR(Work(wave, directions));
    for (const Part& part : wave.parts) use(part.run, of(part));
  }
  return absl::OkStatus();
}

absl::Status WholeMatrices::Work(const Wave& wave, const SharedFloats& directions) const {
  if (wave.to_owners.empty()) {
    const int rank = exchange_ == nullptr ? 0 : exchange_->rank();
    const int64_t begin = wave.cuts[rank], end = wave.cuts[rank + 1];
    NewtonSchulzOf(wave.own, absl::MakeSpan(*directions).subspan(begin, end - begin));
    if (exchange_ == nullptr) return absl::OkStatus();
    return exchange_->AllGather(wave.name, wave.cuts, directions);
  }
  const auto matrix = std::make_shared<std::vector<float>>(
      wave.own < 0 ? 0 : layout_->tensors()[wave.own].matrix.elements);
  DISTRO_RETURN_IF_ERROR(exchange_->AllToAll(wave.name, wave.to_owners, directions, matrix));
  NewtonSchulzOf(wave.own, absl::MakeSpan(*matrix));
  return exchange_->AllToAll(wave.name, wave.to_holders, matrix, directions);
}

void WholeMatrices::NewtonSchulzOf(int tensor, absl::Span<float> matrix) const {
  if (tensor < 0) return;
  static const MatrixKernels& kernels = *SupportedVectorKernels().back().matrix;
  const MatrixShape& shape = layout_->tensors()[tensor].matrix;
  NewtonSchulz(kernels, shape.rows, shape.cols, iterations_, matrix);
}

}  // namespace distro::worker
