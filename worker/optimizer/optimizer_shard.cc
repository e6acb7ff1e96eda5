#include "worker/optimizer/optimizer_shard.h"

#include <algorithm>
#include <utility>

#include "common/base/status_macros.h"

namespace distro::worker {
namespace {

// Entries [first, first + blocks) of a [blocks, K] array, on the device.
template <typename T>
absl::Span<T> Entries(TwinArray<T>& array, int64_t first, int64_t blocks, int kept) {
  return array.device().subspan(first * kept, blocks * kept);
}

// The first block row of each tensor, among those of the model; then their number.
std::vector<int64_t> FirstBlockRows(const Layout& layout) {
  std::vector<int64_t> first = {0};
  for (const TensorLayout& tensor : layout.tensors())
    first.push_back(first.back() + tensor.matrix.BlocksDown());
  return first;
}

}  // namespace

int64_t BlockRows(const Layout& layout) { return FirstBlockRows(layout).back(); }

OptimizerShard::OptimizerShard(const Layout* layout, absl::Span<const ShardRun> runs,
                               Backend* backend, Device* device, RunSpans momentum)
    : layout_(layout),
      runs_(runs.begin(), runs.end()),
      backend_(backend),
      device_(device),
      momentum_(std::move(momentum)),
      positions_(device),
      values_(device),
      row_sums_(device),
      row_sums_workspace_(device) {
  const std::vector<int64_t> first_rows = FirstBlockRows(*layout);
  for (const ShardRun& run : runs_) {
    first_pending_.push_back(blocks_);
    first_block_row_.push_back(first_rows[run.tensor] + run.first_block_row);
    blocks_ += run.matrix.Blocks();
  }
}

// One run after the other in the same workspace: the device does them in this order.
absl::Status OptimizerShard::RowSums(const RunSpans& elements, absl::Span<double> rows) {
  int64_t own_rows = 0, workspace = 0;
  for (const ShardRun& run : runs_) {
    own_rows += run.block_rows;
    workspace = std::max(workspace, backend_->RowSumsWorkspace(run.matrix));
  }
  DISTRO_RETURN_IF_ERROR(row_sums_.Resize(own_rows));
  DISTRO_RETURN_IF_ERROR(row_sums_workspace_.Reserve(workspace * sizeof(double)));
  auto* const scratch = static_cast<double*>(row_sums_workspace_.data());
  int64_t first = 0;
  for (size_t i = 0; i < runs_.size(); ++i) {
    backend_->RowSums(runs_[i].matrix, elements[i], scratch,
                             row_sums_.device().subspan(first, runs_[i].block_rows));
    first += runs_[i].block_rows;
  }
  row_sums_.CopyOut();
  DISTRO_RETURN_IF_ERROR(device_->Finish());
  auto sum = row_sums_.host().begin();
  for (size_t i = 0; i < runs_.size(); ++i) {
    std::copy_n(sum, runs_[i].block_rows, rows.begin() + first_block_row_[i]);
    sum += runs_[i].block_rows;
  }
  return absl::OkStatus();
}

absl::Status OptimizerShard::ResizePending(int kept) {
  kept_ = kept;
  DISTRO_RETURN_IF_ERROR(positions_.Resize(blocks_ * kept));
  return values_.Resize(blocks_ * kept);
}

absl::Status OptimizerShard::Compress(const CompressOptions& options, const RunSpans& gradient) {
  DISTRO_RETURN_IF_ERROR(ResizePending(options.k));
  for (size_t i = 0; i < runs_.size(); ++i) {
    const int64_t blocks = runs_[i].matrix.Blocks();
    backend_->Compress(runs_[i].matrix, {.first = 0, .count = blocks}, options, gradient[i],
                       momentum_[i], Entries(positions_, first_pending_[i], blocks, kept_),
                       Entries(values_, first_pending_[i], blocks, kept_));
  }
  positions_.CopyOut();
  values_.CopyOut();
  return device_->Finish();
}

absl::Status OptimizerShard::Feedback(const std::vector<bool>& included) {
  for (size_t i = 0; i < runs_.size(); ++i) FeedbackOfRun(i, included);
  return device_->Finish();
}

// A segment may begin or end inside the run.
void OptimizerShard::FeedbackOfRun(size_t run, const std::vector<bool>& included) {
  const MatrixShape& matrix = runs_[run].matrix;
  for (int64_t done = 0; done < matrix.Blocks();) {
    const int64_t block = FirstBlockOf(runs_[run]) + done;
    const int64_t segment = block / layout_->segment_blocks();
    const int64_t end = (segment + 1) * layout_->segment_blocks();
    const int64_t blocks = std::min(matrix.Blocks() - done, end - block);
    if (included[segment]) {
      const int64_t first = first_pending_[run] + done;
      backend_->Feedback(matrix, {.first = done, .count = blocks}, kept_,
                         Entries(positions_, first, blocks, kept_),
                         Entries(values_, first, blocks, kept_), momentum_[run]);
    }
    done += blocks;
  }
}

absl::Status OptimizerShard::Lookahead(float eta, const RunSpans& parameters,
                                       const RunSpans& out) const {
  for (size_t i = 0; i < runs_.size(); ++i)
    backend_->Lookahead(eta, parameters[i], momentum_[i], out[i]);
  return device_->Finish();
}

absl::Status OptimizerShard::RestorePending(const PendingUpdate& pending) {
  DISTRO_RETURN_IF_ERROR(ResizePending(pending.k));
  for (size_t i = 0; i < runs_.size(); ++i) {
    for (int64_t b = 0; b < runs_[i].matrix.Blocks(); ++b) {
      const int64_t block = FirstBlockOf(runs_[i]) + b;
      const PendingUpdate::Segment& segment = pending.segments[block / layout_->segment_blocks()];
      const int64_t from = block % layout_->segment_blocks() * kept_;
      const int64_t to = (first_pending_[i] + b) * kept_;
      std::copy_n(segment.positions.begin() + from, kept_, positions_.host().begin() + to);
      std::copy_n(segment.values.begin() + from, kept_, values_.host().begin() + to);
    }
  }
  positions_.CopyIn();
  values_.CopyIn();
  return device_->Finish();
}

}  // namespace distro::worker
