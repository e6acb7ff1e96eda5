#include "worker/rules/deltas/inner_optimizer.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/base/status_macros.h"
#include "common/model/architecture.h"

namespace distro::worker {

std::vector<InnerTensor> InnerTensors(const Layout& layout,
                                      const std::vector<std::vector<int>>& units) {
  std::vector<InnerTensor> tensors;
  const std::vector<bool> inside = TensorsInside(layout, units);
  for (size_t i = 0; i < inside.size(); ++i) {
    const TensorLayout& tensor = layout.tensors()[i];
    tensors.push_back({.matrix = tensor.matrix, .decays = tensor.decays, .inside = inside[i]});
  }
  return tensors;
}

std::vector<bool> MuonTensors(const InnerSettings& settings,
                              absl::Span<const InnerTensor> tensors) {
  std::vector<bool> by_muon;
  for (const InnerTensor& tensor : tensors)
    by_muon.push_back(settings.method == InnerMethod::kMuon && tensor.inside);
  return by_muon;
}

InnerOptimizer::InnerOptimizer(const InnerSettings& settings, std::vector<InnerTensor> tensors,
                               RuleShard shard, RunSpans first, RunSpans second)
    : settings_(settings),
      tensors_(std::move(tensors)),
      by_muon_(MuonTensors(settings_, tensors_)),
      shard_(std::move(shard)),
      first_(std::move(first)),
      second_(std::move(second)),
      matrices_(shard_, by_muon_, settings_.newton_schulz) {}

absl::Status InnerOptimizer::Step(float rate, float gradient_scale, const RunSpans& gradient,
                                  const RunSpans& x) {
  ++steps_;
  InnerBackend& inner = *shard_.inner;
  for (size_t i = 0; i < x.size(); ++i) {
    if (by_muon_[shard_.runs[i].tensor]) continue;
    DISTRO_RETURN_IF_ERROR(inner.AdamW(StepOf(TensorOf(i), rate, gradient_scale), gradient[i],
                                       first_[i], second_[i], x[i]));
  }
  return matrices_.Orthogonalize(
      [&](size_t i, absl::Span<float> direction) {
        return inner.MakeDirection(settings_.mu, gradient_scale, gradient[i], first_[i], direction);
      },
      [&](size_t i, absl::Span<const float> direction) {
        return inner.MoveAlong(MoveOf(TensorOf(i), rate), direction, x[i]);
      });
}

AdamWStep InnerOptimizer::StepOf(const InnerTensor& tensor, float rate,
                                 float gradient_scale) const {
  return {.count = steps_,
          .rate = rate,
          .gradient_scale = gradient_scale,
          .beta1 = settings_.beta1,
          .beta2 = settings_.beta2,
          .epsilon = settings_.epsilon,
          .weight_decay = tensor.decays ? settings_.weight_decay : 0.0f};
}

MuonMove InnerOptimizer::MoveOf(const InnerTensor& tensor, float rate) const {
  const auto longer = static_cast<float>(std::max(tensor.matrix.rows, tensor.matrix.cols));
  return {.rate = rate,
          .scale = settings_.muon_scale * std::sqrt(longer),
          .weight_decay = settings_.weight_decay};
}

void InnerOptimizer::Reset() {
  steps_ = 0;
  for (const RunSpans* state : {&first_, &second_}) {
    for (const absl::Span<float> run : *state)
      shard_.device->Fill(run.data(), 0, run.size() * sizeof(float));
  }
}

}  // namespace distro::worker
