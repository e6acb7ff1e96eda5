#include "tests/testing/sharded_optimizer.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "kernels/cpu/cpu_backend.h"

namespace distro::testing {
namespace {

using worker::OptimizerShard;
using worker::PendingUpdate;
using worker::RunSpans;
using worker::ShardPiece;
using worker::ShardPlan;
using worker::ShardRun;

ShardPlan OneUnit(const Layout& layout, int ranks) {
  std::vector<int> tensors(layout.tensors().size());
  std::iota(tensors.begin(), tensors.end(), 0);
  return *ShardPlan::Create(layout, {tensors}, ranks);
}

// A host has no errors.
void Must(const absl::Status& status) {
  if (!status.ok()) std::abort();
}

TensorBuffer Copy(const Layout& layout, const TensorBuffer& buffer) {
  TensorBuffer copy(layout);
  copy.CopyFrom(buffer);
  return copy;
}

}  // namespace

ShardedOptimizer::ShardedOptimizer(const Layout* layout, int ranks)
    : layout_(layout),
      plan_(OneUnit(*layout, ranks)),
      backend_(MakeReferenceBackend()),
      device_(MakeHostDevice()) {
  std::vector<const OptimizerShard*> shards;
  for (int rank = 0; rank < ranks; ++rank) {
    momentum_.emplace_back(plan_.shard(rank).elements());
    RunSpans spans;
    for (const ShardRun& run : plan_.shard(rank).runs) {
      spans.push_back(
          absl::MakeSpan(momentum_.back()).subspan(run.shard_offset, run.matrix.elements));
    }
    shards_.push_back(std::make_unique<OptimizerShard>(
        layout, plan_.shard(rank).runs, backend_.get(), device_.get(), std::move(spans)));
    shards.push_back(shards_.back().get());
  }
  optimizer_ = std::make_unique<worker::Optimizer>(layout, std::move(shards));
}

RunSpans ShardedOptimizer::RunsOf(int rank, TensorBuffer* buffer) const {
  RunSpans spans;
  for (const ShardRun& run : plan_.shard(rank).runs)
    spans.push_back(buffer->tensor(run.tensor).subspan(run.first_element, run.matrix.elements));
  return spans;
}

double ShardedOptimizer::Norm(const TensorBuffer& gradient) {
  TensorBuffer copy = Copy(*layout_, gradient);
  std::vector<double> rows(worker::BlockRows(*layout_));
  for (int rank = 0; rank < plan_.ranks(); ++rank)
    Must(shards_[rank]->RowSums(RunsOf(rank, &copy), absl::MakeSpan(rows)));
  return optimizer_->Norm(rows);
}

std::vector<SharedBytes> ShardedOptimizer::Compress(RoundId round, const v1::StepParameters& step,
                                                    const TensorBuffer& gradient) {
  const CompressOptions options = worker::Optimizer::CompressionOf(step, Norm(gradient));
  TensorBuffer copy = Copy(*layout_, gradient);
  for (int rank = 0; rank < plan_.ranks(); ++rank)
    Must(shards_[rank]->Compress(options, RunsOf(rank, &copy)));
  optimizer_->SetPending({.round = round, .k = options.k});
  return Encode();
}

std::vector<SharedBytes> ShardedOptimizer::Encode() const {
  std::vector<SharedBytes> payloads;
  for (uint32_t i = 0; i < layout_->segments(); ++i)
    payloads.push_back(optimizer_->EncodeSegment(SegmentId(i)));
  return payloads;
}

void ShardedOptimizer::Feedback(const CommittedRound& round, int member) {
  const std::vector<bool> included = optimizer_->TakeFeedback(round, member);
  if (included.empty()) return;
  for (const auto& shard : shards_) Must(shard->Feedback(included));
}

TensorBuffer ShardedOptimizer::Lookahead(float eta, const TensorBuffer& parameters) {
  TensorBuffer copy = Copy(*layout_, parameters), out(*layout_);
  for (int rank = 0; rank < plan_.ranks(); ++rank)
    Must(shards_[rank]->Lookahead(eta, RunsOf(rank, &copy), RunsOf(rank, &out)));
  return out;
}

void ShardedOptimizer::Restore(const TensorBuffer& momentum,
                               const std::optional<PendingUpdate>& pending) {
  TensorBuffer copy = Copy(*layout_, momentum);
  for (int rank = 0; rank < plan_.ranks(); ++rank) {
    const RunSpans from = RunsOf(rank, &copy);
    for (size_t i = 0; i < from.size(); ++i)
      std::copy(from[i].begin(), from[i].end(), shards_[rank]->momentum()[i].begin());
    if (pending.has_value()) Must(shards_[rank]->RestorePending(*pending));
  }
  optimizer_->ForgetPending();
  if (pending.has_value()) optimizer_->SetPending({.round = pending->round, .k = pending->k});
}

TensorBuffer ShardedOptimizer::momentum() const {
  TensorBuffer whole(*layout_);
  for (int rank = 0; rank < plan_.ranks(); ++rank) {
    const RunSpans to = RunsOf(rank, &whole);
    for (size_t i = 0; i < to.size(); ++i) {
      const absl::Span<const float> from = shards_[rank]->momentum()[i];
      std::copy(from.begin(), from.end(), to[i].begin());
    }
  }
  return whole;
}

std::optional<PendingUpdate> ShardedOptimizer::pending() const {
  if (!optimizer_->pending().has_value()) return std::nullopt;
  PendingUpdate update{
      .round = optimizer_->pending()->round, .k = optimizer_->pending()->k, .segments = {}};
  for (uint32_t i = 0; i < layout_->segments(); ++i) {
    PendingUpdate::Segment& segment = update.segments.emplace_back();
    for (const ShardPiece& piece : optimizer_->SegmentPieces(SegmentId(i))) {
      const auto positions = piece.positions();
      const auto values = piece.values();
      segment.positions.insert(segment.positions.end(), positions.begin(), positions.end());
      segment.values.insert(segment.values.end(), values.begin(), values.end());
    }
  }
  return update;
}

}  // namespace distro::testing
