#include "worker/optimizer/optimizer.h"

#include <algorithm>
#include <cmath>
#include <memory>

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
    : layout_(layout), backend_(backend), momentum_(*layout), pending_(layout->segments()) {}

double Optimizer::GradientNorm(const TensorBuffer& gradient) const {
  double sum = 0;
  for (int i = 0; i < gradient.tensors(); ++i) {
    sum += backend_->SumOfSquares(layout_->tensors()[i].matrix, gradient.tensor(i));
  }
  return std::sqrt(sum);
}

std::vector<SharedBytes> Optimizer::Compress(RoundId round, const v1::StepParameters& step,
                                             const TensorBuffer& gradient, double norm) {
  k_ = static_cast<int>(step.kept_per_block());
  const CompressOptions options = {
      .beta = step.beta(),
      .eta = absl::bit_cast<float>(step.eta_bits()),
      .gradient_scale =
          norm > step.clip_norm() ? static_cast<float>(step.clip_norm() / norm) : 1.0f,
      .k = k_};
  std::vector<SharedBytes> payloads;
  for (SegmentId segment(0); segment.value() < layout_->segments(); segment = segment.Next()) {
    CompressSegment(segment, options, gradient);
    payloads.push_back(EncodeSegment(round, segment));
  }
  has_pending_ = true;
  pending_round_ = round;
  return payloads;
}

void Optimizer::CompressSegment(SegmentId segment, const CompressOptions& options,
                                const TensorBuffer& gradient) {
  Pending& pending = pending_[segment.value()];
  pending.positions.resize(layout_->SegmentBlocks(segment) * k_);
  pending.values.resize(pending.positions.size());
  for (const BlockRun& run : layout_->SegmentRuns(segment)) {
    backend_->Compress(layout_->tensors()[run.tensor].matrix, {run.first_block, run.blocks},
                       options, gradient.tensor(run.tensor), momentum_.tensor(run.tensor),
                       Entries(pending.positions, run, k_), Entries(pending.values, run, k_));
  }
}

SharedBytes Optimizer::EncodeSegment(RoundId round, SegmentId segment) const {
  const Pending& pending = pending_[segment.value()];
  return std::make_shared<const std::string>(EncodeUpdate(
      {.layout_hash = layout_->manifest().short_hash(), .round = round, .segment = segment},
      SignsOf(k_, pending.positions, pending.values)));
}

void Optimizer::Feedback(const CommittedRound& round, int member) {
  if (!has_pending_ || pending_round_ != round.round()) return;
  has_pending_ = false;
  for (SegmentId segment(0); segment.value() < layout_->segments(); segment = segment.Next()) {
    if (!round.Included(member, segment)) continue;
    Pending& pending = pending_[segment.value()];
    for (const BlockRun& run : layout_->SegmentRuns(segment)) {
      backend_->Feedback(layout_->tensors()[run.tensor].matrix, {run.first_block, run.blocks}, k_,
                         Entries(pending.positions, run, k_), Entries(pending.values, run, k_),
                         momentum_.tensor(run.tensor));
    }
  }
}

void Optimizer::Lookahead(float eta, const TensorBuffer& parameters, TensorBuffer* out) const {
  for (int i = 0; i < parameters.tensors(); ++i) {
    backend_->Lookahead(eta, parameters.tensor(i), momentum_.tensor(i), out->tensor(i));
  }
}

}  // namespace distro::worker
