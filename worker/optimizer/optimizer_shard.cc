#include "worker/optimizer/optimizer_shard.h"

#include <algorithm>
#include <utility>

namespace distro::worker {
namespace {

// Entries [first, first + blocks) of a [blocks, K] array.
template <typename T>
absl::Span<T> Entries(std::vector<T>& array, int64_t first, int64_t blocks, int kept) {
  return absl::MakeSpan(array).subspan(first * kept, blocks * kept);
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
                               Backend* backend, RunSpans momentum)
    : layout_(layout),
      runs_(runs.begin(), runs.end()),
      backend_(backend),
      momentum_(std::move(momentum)) {
  const std::vector<int64_t> first_rows = FirstBlockRows(*layout);
  for (const ShardRun& run : runs_) {
    first_pending_.push_back(blocks_);
    first_block_row_.push_back(first_rows[run.tensor] + run.first_block_row);
    blocks_ += run.matrix.Blocks();
  }
}

void OptimizerShard::RowSums(const RunSpans& elements, absl::Span<double> rows) const {
  for (size_t i = 0; i < runs_.size(); ++i) {
    backend_->RowSumsOfSquares(runs_[i].matrix, elements[i],
                               rows.subspan(first_block_row_[i], runs_[i].block_rows));
  }
}

void OptimizerShard::ResizePending(int kept) {
  kept_ = kept;
  positions_.resize(blocks_ * kept);
  values_.resize(positions_.size());
}

void OptimizerShard::Compress(const CompressOptions& options, const RunSpans& gradient) {
  ResizePending(options.k);
  for (size_t i = 0; i < runs_.size(); ++i) {
    const int64_t blocks = runs_[i].matrix.Blocks();
    backend_->Compress(runs_[i].matrix, {.first = 0, .count = blocks}, options, gradient[i],
                       momentum_[i], Entries(positions_, first_pending_[i], blocks, kept_),
                       Entries(values_, first_pending_[i], blocks, kept_));
  }
}

void OptimizerShard::Feedback(const std::vector<bool>& included) {
  for (size_t i = 0; i < runs_.size(); ++i) FeedbackOfRun(i, included);
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

void OptimizerShard::Lookahead(float eta, const RunSpans& parameters, const RunSpans& out) const {
  for (size_t i = 0; i < runs_.size(); ++i)
    backend_->Lookahead(eta, parameters[i], momentum_[i], out[i]);
}

void OptimizerShard::RestorePending(const PendingUpdate& pending) {
  ResizePending(pending.k);
  for (size_t i = 0; i < runs_.size(); ++i) {
    for (int64_t b = 0; b < runs_[i].matrix.Blocks(); ++b) {
      const int64_t block = FirstBlockOf(runs_[i]) + b;
      const PendingUpdate::Segment& segment = pending.segments[block / layout_->segment_blocks()];
      const int64_t from = block % layout_->segment_blocks() * kept_;
      const int64_t to = (first_pending_[i] + b) * kept_;
      std::copy_n(segment.positions.begin() + from, kept_, positions_.begin() + to);
      std::copy_n(segment.values.begin() + from, kept_, values_.begin() + to);
    }
  }
}

}  // namespace distro::worker
