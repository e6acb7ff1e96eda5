#include "worker/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/base/casts.h"
#include "common/codec/payload.h"
#include "worker/optimizer/signs.h"

namespace distro::worker {
namespace {

// The entries of a run of blocks within a segment's [B, K] array.
template <typename T>
absl::Span<T> Entries(std::vector<T>& array, const BlockRun& run, int k) {
  return absl::MakeSpan(array).subspan(run.offset * k, run.blocks * k);
}

}  // namespace

Optimizer::Optimizer(const Layout* layout, Backend* backend)
    : layout_(layout), backend_(backend), momentum_(*layout) {
  pending_.segments.resize(layout->segments());
}

double Optimizer::GradientNorm(const TensorBuffer& gradient) const {
  double sum = 0;
  for (int i = 0; i < gradient.tensors(); ++i) {
    sum += backend_->SumOfSquares(layout_->tensors()[i].matrix, gradient.tensor(i));
  }
  return std::sqrt(sum);
}

std::vector<SharedBytes> Optimizer::Compress(RoundId round, const v1::StepParameters& step,
                                             const TensorBuffer& gradient, double norm) {
  pending_.round = round;
  pending_.k = static_cast<int>(step.kept_per_block());
  const CompressOptions options = {
      .beta = step.beta(),
      .eta = absl::bit_cast<float>(step.eta_bits()),
      .gradient_scale =
          norm > step.clip_norm() ? static_cast<float>(step.clip_norm() / norm) : 1.0f,
      .k = pending_.k};
  for (SegmentId segment(0); segment.value() < layout_->segments(); segment = segment.Next()) {
    CompressSegment(segment, options, gradient);
  }
  has_pending_ = true;
  return EncodePending();
}

void Optimizer::CompressSegment(SegmentId segment, const CompressOptions& options,
                                const TensorBuffer& gradient) {
  PendingUpdate::Segment& pending = pending_.segments[segment.value()];
  pending.positions.resize(layout_->SegmentBlocks(segment) * pending_.k);
  pending.values.resize(pending.positions.size());
  for (const BlockRun& run : layout_->SegmentRuns(segment)) {
    backend_->Compress(layout_->tensors()[run.tensor].matrix, {run.first_block, run.blocks},
                       options, gradient.tensor(run.tensor), momentum_.tensor(run.tensor),
                       Entries(pending.positions, run, pending_.k),
                       Entries(pending.values, run, pending_.k));
  }
}

std::vector<SharedBytes> Optimizer::EncodePending() const {
  std::vector<SharedBytes> payloads;
  for (SegmentId segment(0); segment.value() < layout_->segments(); segment = segment.Next())
    payloads.push_back(EncodeSegment(segment));
  return payloads;
}

SharedBytes Optimizer::EncodeSegment(SegmentId segment) const {
  const PendingUpdate::Segment& pending = pending_.segments[segment.value()];
  return std::make_shared<const std::string>(
      EncodeUpdate({.layout_hash = layout_->manifest().short_hash(),
                    .round = pending_.round,
                    .segment = segment},
                   SignsOf(pending_.k, pending.positions, pending.values)));
}

void Optimizer::Restore(TensorBuffer momentum, std::optional<PendingUpdate> pending) {
  momentum_ = std::move(momentum);
  has_pending_ = pending.has_value();
  if (pending.has_value()) pending_ = *std::move(pending);
}

void Optimizer::Feedback(const CommittedRound& round, int member) {
  if (!has_pending_ || pending_.round != round.round()) return;
  has_pending_ = false;
  for (SegmentId segment(0); segment.value() < layout_->segments(); segment = segment.Next()) {
    if (!round.Included(member, segment)) continue;
    PendingUpdate::Segment& pending = pending_.segments[segment.value()];
    for (const BlockRun& run : layout_->SegmentRuns(segment)) {
      backend_->Feedback(layout_->tensors()[run.tensor].matrix, {run.first_block, run.blocks},
                         pending_.k, Entries(pending.positions, run, pending_.k),
                         Entries(pending.values, run, pending_.k), momentum_.tensor(run.tensor));
    }
  }
}

void Optimizer::Lookahead(float eta, const TensorBuffer& parameters, TensorBuffer* out) const {
  for (int i = 0; i < parameters.tensors(); ++i) {
    backend_->Lookahead(eta, parameters.tensor(i), momentum_.tensor(i), out->tensor(i));
  }
}

}  // namespace distro::worker
