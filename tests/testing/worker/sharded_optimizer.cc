#include "tests/testing/worker/sharded_optimizer.h"

#include <algorithm>
#include <cstdlib>
#include <numeric>

#include "absl/algorithm/container.h"
#include "absl/strings/str_join.h"
#include "kernels/cpu/cpu_backend.h"
#include "worker/rules/host_backends.h"

namespace distro::testing {
namespace {

using worker::BlockBytes;
using worker::PendingUpdate;
using worker::RuleShard;
using worker::RunSpans;
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

}  // namespace

TensorBuffer Copy(const Layout& layout, const TensorBuffer& buffer) {
  TensorBuffer copy(layout);
  for (int i = 0; i < buffer.tensors(); ++i) absl::c_copy(buffer.tensor(i), copy.tensor(i).begin());
  return copy;
}

ShardedOptimizer::ShardedOptimizer(const Layout* layout, int ranks)
    : layout_(layout),
      plan_(OneUnit(*layout, ranks)),
      backend_(MakeReferenceBackend()),
      device_(MakeHostDevice()) {
  std::vector<worker::RankRule> ranks_of_worker;
  for (int rank = 0; rank < ranks; ++rank) {
    momentum_.emplace_back(plan_.shard(rank).elements());
    RunSpans spans;
    for (const ShardRun& run : plan_.shard(rank).runs) {
      spans.push_back(
          absl::MakeSpan(momentum_.back()).subspan(run.shard_offset, run.matrix.elements));
    }
    const RuleShard shard = {.layout = layout,
                             .runs = plan_.shard(rank).runs,
                             .backend = backend_.get(),
                             .device = device_.get()};
    rules_.push_back(worker::kSignMomentum.make(shard, {std::move(spans)}));
    row_sums_.push_back(std::make_unique<worker::RowSums>(shard));
    ranks_of_worker.push_back({.rule = rules_.back().get(), .runs = plan_.shard(rank).runs});
  }
  optimizer_ = std::make_unique<worker::Optimizer>(layout, &worker::kSignMomentum,
                                                   std::move(ranks_of_worker));
}

RunSpans ShardedOptimizer::RunsOf(int rank, TensorBuffer* buffer) const {
  return worker::RunsOf(plan_.shard(rank).runs, worker::SpansOf(buffer));
}

double ShardedOptimizer::Norm(const TensorBuffer& gradient) {
  TensorBuffer copy = Copy(*layout_, gradient);
  std::vector<double> rows(worker::BlockRows(*layout_));
  for (int rank = 0; rank < plan_.ranks(); ++rank)
    Must(row_sums_[rank]->Of(RunsOf(rank, &copy), absl::MakeSpan(rows)));
  return worker::NormOf(*layout_, rows);
}

std::vector<SharedBytes> ShardedOptimizer::Compress(RoundId round, const v1::StepParameters& step,
                                                    const TensorBuffer& gradient) {
  const double norm = Norm(gradient);
  TensorBuffer copy = Copy(*layout_, gradient);
  for (int rank = 0; rank < plan_.ranks(); ++rank) {
    Must(rules_[rank]->TakeStep(step, 0, norm, RunsOf(rank, &copy), {}));
    Must(rules_[rank]->Compress(step, {}, {}));
  }
  optimizer_->SetPending({.round = round, .k = static_cast<int>(step.kept_per_block())});
  return Encode();
}

std::vector<SharedBytes> ShardedOptimizer::Encode() const {
  return optimizer_->Encode(/*threads=*/1);
}

void ShardedOptimizer::Feedback(const CommittedRound& round, int member) {
  if (!optimizer_->TakePending(round.round())) return;
  for (const auto& rule : rules_) Must(rule->Feedback(round, {}, member));
}

TensorBuffer ShardedOptimizer::Lookahead(float eta, const TensorBuffer& parameters) {
  TensorBuffer copy = Copy(*layout_, parameters), out(*layout_);
  for (int rank = 0; rank < plan_.ranks(); ++rank)
    Must(rules_[rank]->Lookahead(eta, RunsOf(rank, &copy), RunsOf(rank, &out)));
  return out;
}

void ShardedOptimizer::Restore(const TensorBuffer& momentum,
                               const std::optional<PendingUpdate>& pending) {
  TensorBuffer copy = Copy(*layout_, momentum);
  for (int rank = 0; rank < plan_.ranks(); ++rank) {
    const RunSpans from = RunsOf(rank, &copy);
    for (size_t i = 0; i < from.size(); ++i)
      std::copy(from[i].begin(), from[i].end(), rules_[rank]->elements()[0][i].begin());
    if (pending.has_value()) Must(rules_[rank]->RestorePending(*pending));
  }
  optimizer_->ForgetPending();
  if (pending.has_value()) optimizer_->SetPending({.round = pending->round, .k = pending->k});
}

std::vector<TensorPieces> ShardedOptimizer::elements() const {
  TensorPieces pieces(layout_->tensors().size());
  for (int rank = 0; rank < plan_.ranks(); ++rank) {
    const std::vector<ShardRun>& runs = plan_.shard(rank).runs;
    for (size_t i = 0; i < runs.size(); ++i)
      pieces[runs[i].tensor].push_back(rules_[rank]->elements()[0][i]);
  }
  return {pieces};
}

TensorBuffer ShardedOptimizer::momentum() const {
  TensorBuffer whole(*layout_);
  for (int rank = 0; rank < plan_.ranks(); ++rank) {
    const RunSpans to = RunsOf(rank, &whole);
    for (size_t i = 0; i < to.size(); ++i) {
      const absl::Span<const float> from = rules_[rank]->elements()[0][i];
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
    BlockBytes& segment = update.segments.emplace_back();
    for (const auto& array : optimizer_->PendingPieces(SegmentId(i)))
      segment.push_back(absl::StrJoin(array, ""));
  }
  return update;
}

}  // namespace distro::testing
