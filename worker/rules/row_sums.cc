#include "worker/rules/row_sums.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

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
  return Sum([&](size_t run) { return absl::Span<const float>(elements[run]); }, rows);
}

absl::Status RowSums::OfDifference(const RunSpans& a, const RunSpans& b, const RunSpans& scratch,
                                   absl::Span<double> rows) {
  int64_t largest = 0;
  for (const ShardRun& run : shard_.runs) largest = std::max(largest, run.matrix.elements);
  DeviceBuffer own(shard_.device);
  if (scratch.empty()) DISTRO_RETURN_IF_ERROR(own.Reserve(largest * sizeof(float)));
  return Sum(
      [&](size_t run) -> absl::StatusOr<absl::Span<const float>> {
        const absl::Span<float> out =
            scratch.empty() ? absl::MakeSpan(static_cast<float*>(own.data()), a[run].size())
                            : scratch[run];
        DISTRO_RETURN_IF_ERROR(shard_.inner->Subtract(a[run], b[run], out));
        return out;
      },
      rows);
}

// All runs use one workspace: the device processes them in order.
absl::Status RowSums::Sum(
    absl::FunctionRef<absl::StatusOr<absl::Span<const float>>(size_t run)> elements_of,
    absl::Span<double> rows) {
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
    DISTRO_ASSIGN_OR_RETURN(const absl::Span<const float> elements, elements_of(i));
    shard_.backend->RowSums(run.matrix, elements, scratch,
                            sums_.device().subspan(first, run.block_rows));
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
