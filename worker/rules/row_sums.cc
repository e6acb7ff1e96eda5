#include "worker/rules/row_sums.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

// Block rows whose difference is formed at once where there is no memory for a run's.
constexpr int64_t kTileRows = 8;

// The first block row of each tensor, among those of the model; then their number.
std::vector<int64_t> FirstBlockRows(const Layout& layout) {
  std::vector<int64_t> first = {0};
  for (const TensorLayout& tensor : layout.tensors())
    first.push_back(first.back() + tensor.matrix.BlocksDown());
  return first;
}

}  // namespace

int64_t BlockRows(const Layout& layout) { return FirstBlockRows(layout).back(); }

double NormOf(const Layout& layout, absl::Span<const double> rows) {
  double sum = 0;
  auto row = rows.begin();
  for (const TensorLayout& tensor : layout.tensors()) {
    double of_tensor = 0;
    for (int64_t i = 0; i < tensor.matrix.BlocksDown(); ++i) of_tensor += *row++;
    sum += of_tensor;
  }
  return std::sqrt(sum);
}

RowSums::RowSums(RuleShard shard)
    : shard_(std::move(shard)), sums_(shard_.device), workspace_(shard_.device) {
  const std::vector<int64_t> first_rows = FirstBlockRows(*shard_.layout);
  for (const ShardRun& run : shard_.runs)
    first_block_row_.push_back(first_rows[run.tensor] + run.first_block_row);
}

absl::Status RowSums::Of(const RunSpans& elements, absl::Span<double> rows) {
  return Sum(
      [&](size_t run, double* workspace, absl::Span<double> sums) {
        shard_.backend->RowSums(shard_.runs[run].matrix, elements[run], workspace, sums);
        return absl::OkStatus();
      },
      rows);
}

absl::Status RowSums::OfDifference(const RunSpans& a, const RunSpans& b, const RunSpans& scratch,
                                   absl::Span<double> rows) {
  if (!scratch.empty()) {
    for (size_t i = 0; i < shard_.runs.size(); ++i)
      DISTRO_RETURN_IF_ERROR(shard_.inner->Subtract(a[i], b[i], scratch[i]));
    return Of(scratch, rows);
  }
  int64_t largest = 0;
  for (const ShardRun& run : shard_.runs)
    largest = std::max(largest, kTileRows * kBlockSide * run.matrix.cols);
  DeviceBuffer memory(shard_.device);
  DISTRO_RETURN_IF_ERROR(memory.Reserve(largest * sizeof(float)));
  return Sum(
      [&](size_t run, double* workspace, absl::Span<double> sums) -> absl::Status {
        const MatrixShape& matrix = shard_.runs[run].matrix;
        for (int64_t row = 0; row < matrix.BlocksDown(); row += kTileRows) {
          const int64_t count = std::min(kTileRows, matrix.BlocksDown() - row);
          const MatrixShape tile = MatrixOfRows(matrix, row, count);
          const int64_t first = FirstElement(matrix, row);
          const auto out = absl::MakeSpan(static_cast<float*>(memory.data()), tile.elements);
          DISTRO_RETURN_IF_ERROR(shard_.inner->Subtract(a[run].subspan(first, tile.elements),
                                                        b[run].subspan(first, tile.elements), out));
          shard_.backend->RowSums(tile, out, workspace, sums.subspan(row, count));
        }
        return absl::OkStatus();
      },
      rows);
}

// All runs use one workspace: the device processes them in order.
absl::Status RowSums::Sum(RunSums enqueue, absl::Span<double> rows) {
  int64_t own_rows = 0, workspace = 0;
  for (const ShardRun& run : shard_.runs) {
    own_rows += run.block_rows;
    workspace = std::max(workspace, shard_.backend->RowSumsWorkspace(run.matrix));
  }
  DISTRO_RETURN_IF_ERROR(sums_.Resize(own_rows));
  DISTRO_RETURN_IF_ERROR(workspace_.Reserve(workspace * sizeof(double)));
  auto* const scratch = static_cast<double*>(workspace_.data());
  int64_t first = 0;
  for (size_t i = 0; i < shard_.runs.size(); ++i) {
    const ShardRun& run = shard_.runs[i];
    DISTRO_RETURN_IF_ERROR(enqueue(i, scratch, sums_.device().subspan(first, run.block_rows)));
    first += run.block_rows;
  }
  sums_.CopyOut();
  DISTRO_RETURN_IF_ERROR(shard_.device->Finish());
  auto sum = sums_.host().begin();
  for (size_t i = 0; i < shard_.runs.size(); ++i) {
    std::copy_n(sum, shard_.runs[i].block_rows, rows.begin() + first_block_row_[i]);
    sum += shard_.runs[i].block_rows;
  }
  return absl::OkStatus();
}

}  // namespace distro::worker
